// Who holds which block: tables as planned, one list per sequence, counted by brute force.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/property/sim/sim_world.h"
#include "tests/testing/scheduler_peer.h"

namespace quire::sim {

// S1: every granted token has a block. A4: what is written has one holder. A table only grows while
// its sequence runs, by blocks that nobody held.
void World::MoveTables(const StepPlan& plan) {
  std::ranges::fill(holders_, 0);
  ForEachSeq([&](const ShadowSeq& seq) {
    for (BlockId id : seq.table) ++holders_[static_cast<size_t>(id)];
  });
  for (const PlannedSeq& planned : plan.seqs) {
    ShadowSeq& seq = *FindSeq(planned.id);
    const std::span<const BlockId> table = planned.block_table;
    const auto end = static_cast<size_t>(BlocksFor(planned.num_computed + seq.granted));
    Require(table.size() == end, "S1: a table that does not fit its tokens");
    Require(table.size() >= seq.table.size() &&
                std::equal(seq.table.begin(), seq.table.end(), table.begin()),
            "A8: a block of a running sequence was replaced");
    if (failed()) return;
    for (size_t i = seq.table.size(); i < table.size(); ++i) {
      const auto block = static_cast<int32_t>(table[i]);
      if (block < 0 || block >= config_.num_blocks) return Require(false, "A1: no such block");
      Require(holders_[static_cast<size_t>(block)]++ == 0, "A4: a fresh block that somebody holds");
    }
    seq.table.assign(table.begin(), table.end());
  }
  for (const PlannedSeq& planned : plan.seqs) {
    const ShadowSeq& seq = *FindSeq(planned.id);
    for (auto i = static_cast<size_t>(planned.num_computed / kBlockTokens); i < seq.table.size();
         ++i) {
      Require(holders_[static_cast<size_t>(seq.table[i])] == 1, "A4: writes to a shared block");
    }
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
    if (pool.ref_count(BlockId{i}) == 0) runner_.PoisonBlock(BlockId{i});
  }
}

}  // namespace quire::sim
