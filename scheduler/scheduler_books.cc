// The reading side of the scheduler: statistics, wake-up time, and the check that the books
// balance.
#include <algorithm>

#include "absl/log/check.h"
#include "scheduler/expiry.h"
#include "scheduler/scheduler_state.h"

namespace quire {

MonotonicTime Scheduler::NextDeadline() const {
  MonotonicTime next = MonotonicTime::kInfinite;
  const auto consider = [&](const Sequence* sequence) {
    next = std::min(
        next, ExpiryOf(*sequence->request, sequence->started, state_->options.max_queue_ns).time);
  };
  std::ranges::for_each(state_->running.items(), consider);
  std::ranges::for_each(state_->waiting.items(), consider);
  return next;
}

std::span<const TenantShare> Scheduler::Tenants() const { return state_->shares.tenants(); }

bool Scheduler::HasWork() const {
  const auto active = [](const Sequence* sequence) { return !sequence->paused; };
  return !state_->ended.empty() || !state_->retired.empty() ||
         std::ranges::any_of(state_->running.items(), active) ||
         std::ranges::any_of(state_->waiting.items(), active);
}

SchedulerStats Scheduler::Stats() const {
  const State& s = *state_;
  SchedulerStats stats{.running = s.running.num_active(),
                       .waiting_tokens = s.waiting.tokens(),
                       .blocks_total = s.pool.total(),
                       .blocks_used = s.pool.num_used(),
                       .blocks_cached = s.pool.num_cached(),
                       .blocks_free = s.pool.num_free(),
                       .sequences_started = s.sequences_started,
                       .sequences_finished = s.sequences_finished,
                       .prefill_tokens = s.prefill_tokens,
                       .recompute_tokens = s.recompute_tokens,
                       .decode_tokens = s.decode_tokens,
                       .prefix_query_tokens = s.cache.stats().query_tokens,
                       .prefix_hit_tokens = s.cache.stats().hit_tokens,
                       .block_evictions = s.cache.stats().evictions,
                       .rates = s.pacer.rates()};
  const std::array<int64_t, 3>& preemptions = s.planner.blocks().preemptions();
  stats.preemptions_for_blocks = preemptions[static_cast<size_t>(PreemptCause::kBlocks)];
  stats.preemptions_for_priority = preemptions[static_cast<size_t>(PreemptCause::kPriority)];
  stats.preemptions_of_paused = preemptions[static_cast<size_t>(PreemptCause::kPaused)];
  stats.preemptions = preemptions[0] + preemptions[1] + preemptions[2];
  for (const Sequence* sequence : s.running.items()) {
    if (!sequence->paused) continue;
    ++stats.waiting;
    stats.waiting_tokens += sequence->uncomputed();
  }
  stats.waiting += s.waiting.size();
  return stats;
}

void Scheduler::State::CheckSequence(const Sequence& sequence) const {
  CHECK(sequence.num_computed >= 0 && sequence.num_computed < sequence.num_tokens());
  CHECK_LE(sequence.num_output(), sequence.request->stop.max_tokens);
  CHECK_LE(sequence.bypasses, options.queue.max_bypasses);
  CHECK_GE(sequence.level, sequence.priority);
  CHECK_LE(sequence.displacements, sequence.preemptions);
  CHECK_EQ(sequence.pinned, sequence.displacements >= options.queue.max_preemptions);
  CHECK_GE(sequence.blocks.size(), BlocksFor(sequence.num_computed));
  CHECK_LE(sequence.blocks.size(), BlocksFor(sequence.num_tokens()));
  if (sequence.running) {
    CHECK(sequence.started);
    CHECK_GE(sequence.blocks.size(), 1);
  } else {
    CHECK_EQ(sequence.num_computed, 0);
    CHECK_EQ(sequence.blocks.size(), 0);
  }
  CheckFindable(sequence);
}

// What can be found of a sequence is what it holds: its scope and tokens, behind the same block.
void Scheduler::State::CheckFindable(const Sequence& sequence) const {
  const PrefixIndex& index = cache.index();
  const std::span<const TokenId> tokens = sequence.tokens;
  for (int32_t i = 0; i < sequence.blocks.size(); ++i) {
    const BlockId id = sequence.blocks.at(i);
    if (id == BlockId::kNone || !index.contains(id)) continue;
    const std::span<const TokenId> found = index.tokens(id);
    const size_t begin = static_cast<size_t>(i) * kBlockTokens;
    CHECK_LE(begin + found.size(), static_cast<size_t>(sequence.num_computed));
    CHECK(std::ranges::equal(found, tokens.subspan(begin, found.size())))
        << "block " << static_cast<int32_t>(id) << " holds other tokens than its sequence";
    CHECK(index.scope(id) == sequence.scope());
    const BlockId before = i == 0 ? BlockId::kNone : sequence.blocks.at(i - 1);
    CHECK(index.parent(id) == before || (i > 0 && before == BlockId::kNone));
  }
}

void Scheduler::CheckInvariants() const {
  const State& s = *state_;
  s.pool.CheckInvariants();
  s.cache.index().CheckInvariants();
  std::vector<int32_t> holders(static_cast<size_t>(s.pool.total()));
  int64_t waiting_tokens = 0;
  size_t listed = s.running.items().size() + s.waiting.items().size() + s.retired.size();
  const auto check_list = [&](std::span<Sequence* const> items, bool running) {
    for (size_t i = 0; i < items.size(); ++i) {
      CHECK_EQ(items[i]->running, running);
      CHECK(i == 0 ||
            (running ? items[i - 1]->Outranks(*items[i]) : items[i - 1]->order < items[i]->order))
          << "order lost";
      s.CheckSequence(*items[i]);
      for (BlockId id : items[i]->blocks.ids()) {
        if (id != BlockId::kNone) ++holders[static_cast<size_t>(id)];
      }
      if (!running) waiting_tokens += items[i]->uncomputed();
    }
  };
  check_list(s.running.items(), true);
  check_list(s.waiting.items(), false);
  for (const Sequence* sequence : s.retired) CHECK_EQ(sequence->blocks.size(), 0);
  CHECK_EQ(s.waiting.tokens(), waiting_tokens);
  for (int32_t i = 0; i < s.pool.total(); ++i) {
    CHECK_EQ(s.pool.ref_count(BlockId{i}), holders[static_cast<size_t>(i)])
        << "holders of block " << i;
  }
  size_t open = 0;
  for (const auto& [id, request] : s.live) open += static_cast<size_t>(request->open);
  CHECK_EQ(open, listed) << "a sequence is lost, or listed twice";
  const SchedulerStats stats = Stats();
  CHECK_EQ(stats.sequences_started, stats.sequences_finished + stats.running + stats.waiting);
  CHECK_EQ(stats.blocks_free + stats.blocks_cached + stats.blocks_used, stats.blocks_total);
}

}  // namespace quire
