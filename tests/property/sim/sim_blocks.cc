// Who holds which block: tables as planned, one list per sequence, counted by brute force.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/property/sim/sim_world.h"
#include "tests/testing/scheduler_peer.h"

namespace quire::sim {

// S1: every granted token has a block. A4: what is written has one holder. A table only grows while
// its sequence runs, by blocks that nobody held, but for what the cache has of it when it starts.
void World::MoveTables(const StepPlan& plan) {
  for (const PlannedSeq& planned : plan.seqs) {
    MoveTable(plan, planned, *FindSeq(planned.id));
    if (failed()) return;
  }
  std::ranges::fill(holders_, 0);
  ForEachSeq([&](const ShadowSeq& seq) {
    for (BlockId id : seq.table) ++holders_[static_cast<size_t>(id)];
  });
  for (const PlannedSeq& planned : plan.seqs) {
    const ShadowSeq& seq = *FindSeq(planned.id);
    for (auto i = static_cast<size_t>(planned.num_computed / kBlockTokens); i < seq.table.size();
         ++i) {
      Require(holders_[static_cast<size_t>(seq.table[i])] == 1, "A4: writes to a shared block");
    }
  }
  MoveWriters(plan);
}

void World::MoveTable(const StepPlan& plan, const PlannedSeq& planned, ShadowSeq& seq) {
  const std::span<const BlockId> table = planned.block_table;
  const auto end = static_cast<size_t>(BlocksFor(planned.num_computed + seq.granted));
  const auto tail = static_cast<size_t>(planned.num_computed / kBlockTokens);
  const int32_t in_tail = planned.num_computed % kBlockTokens;
  Require(table.size() == end, "S1: a table that does not fit its tokens");
  for (BlockId id : table) {
    const auto block = static_cast<int32_t>(id);
    Require(block >= 0 && block < config_.num_blocks, "A1: no such block");
  }
  if (failed()) return;
  bool copied = false;  // its tail: the one block that may change while it runs
  for (const BlockCopy& copy : plan.copies) {
    if (in_tail == 0 || copy.dst != table[tail]) continue;
    copied = copy.token_count == in_tail && (seq.table.empty() || copy.src == seq.table[tail]);
  }
  result_.coverage.copies += copied;
  if (seq.admitted_now) {
    Require(in_tail == 0 || copied, "A8: starts in the middle of a block that it has not copied");
  } else {
    Require(table.size() >= seq.table.size(), "A8: a table that shrinks");
    for (size_t i = 0; i < seq.table.size() && !failed(); ++i) {
      Require(table[i] == seq.table[i] || (i == tail && copied),
              "A8: a block of a running sequence was replaced");
    }
  }
  seq.table.assign(table.begin(), table.end());
}

// Promise 6: nobody reads what was computed in another domain, or bypasses the cache.
void World::MoveWriters(const StepPlan& plan) {
  for (const BlockCopy& copy : plan.copies) {
    writers_[static_cast<size_t>(copy.dst)] = writers_[static_cast<size_t>(copy.src)];
  }
  for (const PlannedSeq& planned : plan.seqs) {
    const Request& reader = *planned.request;
    for (int32_t i = 0; i < BlocksFor(planned.num_computed); ++i) {
      const BlockId block = planned.block_table[static_cast<size_t>(i)];
      const Writer& writer = writers_[static_cast<size_t>(block)];
      Require(writer.domain == reader.cache_domain, "a block of another cache domain");
      Require(writer.request == reader.id || !(writer.bypass || reader.cache_bypass),
              "a block that bypasses the cache is shared");
    }
  }
  for (const PlannedSeq& planned : plan.seqs) {
    const auto first = static_cast<size_t>(planned.num_computed / kBlockTokens);
    for (BlockId id : planned.block_table.subspan(first)) {
      writers_[static_cast<size_t>(id)] = {.request = planned.id.request,
                                           .domain = planned.request->cache_domain,
                                           .bypass = planned.request->cache_bypass};
    }
  }
}

// A full block may give way to an equal one that another sequence has; what it holds shows when it
// is read.
void World::FollowReplacements() {
  ForEachSeq([&](ShadowSeq& seq) {
    if (!seq.running) return;
    const std::span<const BlockId> now = SchedulerTestPeer::Find(scheduler_, seq.id)->blocks.ids();
    Require(now.size() == seq.table.size(), "A8: a table changes its length in Commit");
    for (size_t i = 0; i < seq.table.size() && !failed(); ++i) {
      if (now[i] == seq.table[i]) continue;
      Require(static_cast<int32_t>(i) < seq.computed / kBlockTokens && config_.prefix_cache,
              "A8: a block that is not full was replaced");
      ++result_.coverage.replaced;
      seq.table[i] = now[i];
    }
  });
}

// Rule 10: what a sequence with non-finite logits computed cannot be found.
void World::CheckWithdrawn(const ShadowSeq& seq) {
  const PrefixIndex& index = SchedulerTestPeer::Get(scheduler_).cache.index();
  for (BlockId id : seq.table) {
    Require(!index.contains(id), "a block of a failed sequence can still be found");
  }
}

// A1, A3: the pool counts exactly the holders, in the tables that are left after the step.
void World::CheckHolders() {
  std::ranges::fill(holders_, 0);
  int32_t used = 0;
  ForEachSeq([&](const ShadowSeq& seq) {
    for (BlockId id : seq.table) used += holders_[static_cast<size_t>(id)]++ == 0;
  });
  const BlockPool& pool = SchedulerTestPeer::Pool(scheduler_);
  for (int32_t i = 0; i < pool.total(); ++i) {
    const int32_t holders = holders_[static_cast<size_t>(i)];
    if (pool.ref_count(BlockId{i}) == holders) continue;
    return Require(false, absl::StrCat("A3: block ", i, " has ", holders, " holders, counted ",
                                       pool.ref_count(BlockId{i})));
  }
  Require(scheduler_.Stats().blocks_used == used, "A2: blocks in use are miscounted");
}

void World::PoisonFreeBlocks() {
  const BlockPool& pool = SchedulerTestPeer::Pool(scheduler_);
  for (int32_t i = 0; i < pool.total(); ++i) {
    if (pool.ref_count(BlockId{i}) == 0 && !pool.findable(BlockId{i})) {
      runner_.PoisonBlock(BlockId{i});
    }
  }
}

}  // namespace quire::sim
