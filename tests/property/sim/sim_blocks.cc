// Who holds which block and what is in it: tables as planned, one list per sequence, counted by
// brute force; contents by who wrote them. What the tokens are is the fake model's business (A8).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/property/sim/sim_world.h"
#include "tests/testing/mix.h"
#include "tests/testing/scheduler_peer.h"

namespace quire::sim {

// S1: every granted token has a block. A4: what is written has one holder and cannot be found. The
// table of a running sequence grows by blocks that nobody held; its last block may become a copy.
void World::MoveTables(const StepPlan& plan) {
  std::ranges::fill(holders_, 0);
  ForEachSeq([&](const ShadowSeq& seq) {
    for (BlockId id : seq.table) {
      if (id != BlockId::kNone) ++HoldersOf(id);
    }
  });
  CollectMoves(plan);
  CopyContents(plan);
  if (failed()) return;
  LetGoOfTails(plan);
  if (failed()) return;
  for (const Move& move : moves_) {  // what is shared, before what is fresh
    const ShadowSeq& seq = *move.seq;
    if (!seq.admitted_now) continue;
    for (int32_t i = 0; i < seq.hit_now / kBlockTokens; ++i) {
      const BlockId id = move.table[static_cast<size_t>(i)];
      if (id == BlockId::kNone) continue;
      CheckShared(seq, id, kBlockTokens);
      ++HoldersOf(id);
      BlockOf(id).cached_at = -1;
    }
  }
  for (const Move& move : moves_) MoveTable(move);
  if (failed()) return;
  const BlockPool& pool = SchedulerTestPeer::Pool(scheduler_);
  for (const PlannedSeq& planned : plan.seqs) {
    const ShadowSeq& seq = *FindSeq(planned.id);
    for (auto i = static_cast<size_t>(planned.num_computed / kBlockTokens); i < seq.table.size();
         ++i) {
      Require(HoldersOf(seq.table[i]) == 1, "A4: writes to a shared block");
      Require(!pool.findable(seq.table[i]), "A4: writes to a block that can be found");
    }
  }
}

void World::CollectMoves(const StepPlan& plan) {
  moves_.clear();
  for (const PlannedSeq& planned : plan.seqs) {
    moves_.push_back({FindSeq(planned.id), planned.block_table, planned.num_computed});
  }
  for (const SequenceId& id : plan.admitted) {
    ShadowSeq* seq = FindSeq(id);
    if (seq->planned || seq->unforked()) continue;
    ++result_.coverage.overtakes;
    moves_.push_back({seq, SchedulerTestPeer::Find(scheduler_, id)->blocks.ids(), seq->hit_now});
  }
  for (const Move& move : moves_) CheckMove(move);
}

void World::CheckMove(const Move& move) {
  const auto needed = static_cast<size_t>(BlocksFor(move.computed + move.seq->granted));
  // One that starts has room for a token at once, even if it gets none in this step.
  const size_t most =
      std::max({needed, move.seq->table.size(), static_cast<size_t>(BlocksFor(move.computed + 1))});
  Require(move.table.size() >= needed && move.table.size() <= most,
          "S1: a table that does not fit its tokens");
  for (size_t i = 0; i < move.table.size(); ++i) {
    const auto block = static_cast<int32_t>(move.table[i]);
    // K8 of windows: exactly what some row still sees is held.
    if (!move.seq->Needs(i, move.computed)) {
      Require(move.table[i] == BlockId::kNone, "a block outside the window is held");
      continue;
    }
    Require(block >= 0 && block < config_.num_blocks, "A1: no such block");
  }
}

// In order, before any row. Contents move with the tokens.
void World::CopyContents(const StepPlan& plan) {
  std::ranges::fill(copy_into_,
                    BlockCopy{.src = BlockId::kNone, .dst = BlockId::kNone, .token_count = 0});
  for (const BlockCopy& copy : plan.copies) {
    Require(copy.token_count >= 1 && copy.token_count < kBlockTokens, "a copy of a whole block");
    Require(copy.token_count <= BlockOf(copy.src).filled, "K6: copies what is not there yet");
    Require(copy_into_[static_cast<size_t>(copy.dst)].token_count == 0, "two copies into a block");
    if (BlockOf(copy.src).cached_at >= 0) BlockOf(copy.src).cached_at = result_.steps + 1;  // a use
    const int64_t cached_at = BlockOf(copy.dst).cached_at;
    BlockOf(copy.dst) = BlockOf(copy.src);
    BlockOf(copy.dst).filled = copy.token_count;
    BlockOf(copy.dst).cached_at = cached_at;
    copy_into_[static_cast<size_t>(copy.dst)] = copy;
    ++result_.coverage.copies;
  }
}

// Tails that become copies are given back, and may be somebody's fresh block in the same step.
void World::LetGoOfTails(const StepPlan& plan) {
  size_t used = 0;
  for (const Move& move : moves_) {
    ShadowSeq& seq = *move.seq;
    const std::span<const BlockId> table = move.table;
    const int32_t tail = move.computed % kBlockTokens;
    const auto last = static_cast<size_t>(move.computed / kBlockTokens);
    const bool fresh = tail > 0 && (seq.admitted_now || seq.table[last] != table[last]);
    // What can no longer be found, and nobody else holds, may be gone on with where it is.
    const bool copied =
        copy_into_[static_cast<size_t>(table[std::min(last, table.size() - 1)])].token_count > 0;
    if (!fresh || (seq.admitted_now && !copied)) continue;
    ++used;
    const BlockCopy& copy = copy_into_[static_cast<size_t>(table[last])];
    Require(copy.token_count == tail,
            absl::StrCat("K6: the last block was replaced, not copied, in\n", plan.DebugString()));
    if (seq.admitted_now) continue;
    Require(copy.src == seq.table[last], "K6: a last block is a copy of another");
    --HoldersOf(seq.table[last]);
    seq.table[last] = BlockId::kNone;
  }
  Require(used == plan.copies.size(), "K6: a copy for nobody");
}

void World::MoveTable(const Move& move) {
  ShadowSeq& seq = *move.seq;
  const std::span<const BlockId> table = move.table;
  const auto last = static_cast<size_t>(move.computed / kBlockTokens);
  size_t known = seq.table.size();
  if (seq.admitted_now) known = static_cast<size_t>(seq.hit_now / kBlockTokens);
  if (table.size() < known) return Require(false, "A8: a running sequence lost a block");
  for (size_t i = 0; i < table.size(); ++i) {
    if (!seq.Needs(i, move.computed)) continue;
    const bool copied = i < known && !seq.admitted_now && seq.table[i] == BlockId::kNone;
    if (i >= known || copied) {
      TakeFresh(seq, table[i], i == last ? move.computed % kBlockTokens : 0);
    } else if (!seq.admitted_now) {
      Require(seq.table[i] == table[i], "A8: a block of a running sequence was replaced");
    }
  }
  seq.table.assign(table.begin(), table.end());
}

// A7: what could be found is given away in order of last use.
void World::TakeFresh(const ShadowSeq& seq, BlockId id, int32_t copied) {
  Require(HoldersOf(id)++ == 0, "A4: a fresh block that somebody holds");
  ShadowBlock& block = BlockOf(id);
  if (copied > 0) {
    CheckShared(seq, id, copied);
    block.filled = copied;
  } else {
    block.filled = 0;
    block.tainted = false;
  }
  const int64_t cached_at = std::exchange(block.cached_at, -1);
  const BlockPool& pool = SchedulerTestPeer::Pool(scheduler_);
  for (int32_t i = 0; cached_at >= 0 && i < pool.total(); ++i) {
    const bool older = blocks_[static_cast<size_t>(i)].cached_at >= 0 &&
                       blocks_[static_cast<size_t>(i)].cached_at < cached_at;
    if (!older || !pool.findable(BlockId{i}) || pool.ref_count(BlockId{i}) > 0) continue;
    Require(false, absl::StrCat("A7: block ", static_cast<int32_t>(id), " that was used at step ",
                                cached_at, " was given away before block ", i, " of step ",
                                blocks_[static_cast<size_t>(i)].cached_at));
  }
  block.domain = seq.owner->request.cache_domain;
  block.kv = seq.owner->request.kv;
  block.writer = seq.id.request;
  block.bypass = seq.owner->request.cache_bypass;
}

// K8, rules 10 and 11: what another computed is used only in the same domain, when it is complete,
// and if both share at all.
void World::CheckShared(const ShadowSeq& seq, BlockId id, int32_t tokens) {
  const ShadowBlock& block = BlockOf(id);
  const Request& request = seq.owner->request;
  Require(block.domain == request.cache_domain, "K8: a block of another domain is shared");
  Require(block.kv == request.kv, "K8: a block of another window is shared");
  Require(block.writer == request.id || !(block.bypass || request.cache_bypass),
          "a block that bypasses the cache is shared");
  Require(block.filled >= tokens, "rule 10: a block is shared before it is filled");
  Require(!block.tainted || block.writer == request.id, "rule 10: a block with NaN is shared");
}

void World::FillBlocks(const ShadowSeq& seq, int32_t end) {
  for (int32_t i = (end - seq.granted) / kBlockTokens; i < BlocksFor(end); ++i) {
    ShadowBlock& block = BlockOf(seq.table[static_cast<size_t>(i)]);
    block.filled = std::min(kBlockTokens, end - i * kBlockTokens);
    if (block.filled < kBlockTokens) continue;
    const BlockId before = i == 0 ? BlockId::kNone : seq.table[static_cast<size_t>(i - 1)];
    block.chain = before == BlockId::kNone ? 0 : BlockOf(before).chain;
    const auto first = static_cast<size_t>(i * kBlockTokens);
    for (size_t t = first; t < first + kBlockTokens; ++t)
      block.chain = Mix(block.chain, static_cast<uint64_t>(seq.whole[t]));
  }
}

// Of a sequence that ends in the step that filled a block: if an equal one was cached, that one has
// been used just now.
void World::TouchEqual(const ShadowSeq& seq) {
  if (!config_.prefix_cache || seq.owner->request.cache_bypass) return;
  const int32_t begin = seq.computed - seq.granted;
  for (int32_t i = begin / kBlockTokens; i < seq.computed / kBlockTokens; ++i) {
    // Without what precedes it, it is not looked up.
    if (i > 0 && seq.table[static_cast<size_t>(i - 1)] == BlockId::kNone) continue;
    const ShadowBlock& own = BlockOf(seq.table[static_cast<size_t>(i)]);
    for (ShadowBlock& block : blocks_) {
      if (block.cached_at >= 0 && block.filled == kBlockTokens && block.chain == own.chain &&
          block.domain == own.domain && block.kv == own.kv)
        block.cached_at = result_.steps;
    }
  }
}

void World::Taint(const ShadowSeq& seq) {
  for (size_t i = 0; i < seq.table.size(); ++i) {
    if (seq.Needs(i, seq.computed)) BlockOf(seq.table[i]).tainted = true;
  }
}

// A block that was filled just now may give way to an equal one that is known already.
void World::CheckMerged(ShadowSeq& seq) {
  if (!seq.running) return;
  const Sequence* real = SchedulerTestPeer::Find(scheduler_, seq.id);
  if (real == nullptr) return Require(false, "L5: a running sequence is gone");
  const std::span<const BlockId> table = real->blocks.ids();
  if (table.size() != seq.table.size()) return Require(false, "A3: a table changed in Commit");
  const auto first = static_cast<size_t>((seq.computed - seq.granted) / kBlockTokens);
  for (size_t i = 0; i < table.size(); ++i) {
    if (!seq.Needs(i, seq.computed)) {  // its window has passed it
      Require(table[i] == BlockId::kNone, "a block outside the window is held");
      result_.coverage.windows += seq.table[i] != BlockId::kNone;
      seq.table[i] = BlockId::kNone;
      continue;
    }
    if (table[i] == seq.table[i]) continue;
    Require(i >= first && static_cast<int32_t>(i) < seq.computed / kBlockTokens,
            "A8: a block changed that was not filled just now");
    // Another one that merged into it may have failed in this step, and taken it out of the index.
    Require(withdrawn_now_ || SchedulerTestPeer::Pool(scheduler_).findable(table[i]),
            "merged into a lost block");
    seq.table[i] = table[i];
    CheckShared(seq, table[i], kBlockTokens);
    ++result_.coverage.merged;
  }
}

// A1, A3: the pool counts exactly the holders, in the tables that are left after the step.
void World::CheckHolders() {
  std::ranges::fill(holders_, 0);
  ForEachSeq([&](const ShadowSeq& seq) {
    for (BlockId id : seq.table) {
      if (id != BlockId::kNone) ++HoldersOf(id);
    }
  });
  const BlockPool& pool = SchedulerTestPeer::Pool(scheduler_);
  int32_t used = 0, cached = 0;
  for (int32_t i = 0; i < pool.total(); ++i) {
    const BlockId id{i};
    const int32_t holders = HoldersOf(id);
    ShadowBlock& block = BlockOf(id);
    used += holders > 0;
    const bool is_cached = holders == 0 && pool.findable(id);
    cached += is_cached;
    if (!is_cached) block.cached_at = -1;
    // What a window passed is older than what follows it, and both go together: no order to check.
    if (is_cached && block.cached_at < 0 && block.kv.window_tokens == 0)
      block.cached_at = result_.steps;
    Require(!pool.findable(id) || !block.tainted, "rule 10: a block with NaN can be found");
    if (pool.ref_count(id) == holders) continue;
    return Require(false, absl::StrCat("A3: block ", i, " has ", holders, " holders, counted ",
                                       pool.ref_count(id)));
  }
  const SchedulerStats stats = scheduler_.Stats();
  Require(stats.blocks_used == used && stats.blocks_cached == cached,
          "A2: blocks in use or cached are miscounted");
}

void World::PoisonFreeBlocks() {
  const BlockPool& pool = SchedulerTestPeer::Pool(scheduler_);
  for (int32_t i = 0; i < pool.total(); ++i) {
    const BlockId id{i};
    if (pool.ref_count(id) == 0 && !pool.findable(id)) runner_.PoisonBlock(id);
  }
}

}  // namespace quire::sim
