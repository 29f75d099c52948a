// The reading side of the scheduler: statistics, wake-up time, and the check that the books
// balance.
#include <algorithm>

#include "absl/log/check.h"
#include "runtime/base/status_macros.h"
#include "scheduler/audit.h"
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
    if (sequence->paused) {
      stats.waiting += sequence->forks.places;
      stats.waiting_tokens += sequence->uncomputed();
    } else if (sequence->uncomputed() > 1) {
      stats.prompt_backlog += sequence->uncomputed();
    }
  }
  stats.waiting += s.NumWaiting();
  return stats;
}

int32_t Scheduler::State::NumWaiting() const {
  int32_t count = 0;
  for (const Sequence* sequence : running.items()) {
    count += 1 + sequence->forks.children - sequence->forks.places;
  }
  for (const Sequence* sequence : waiting.items()) count += 1 + sequence->forks.children;
  return count;
}

absl::Status Scheduler::State::AuditSequence(const Sequence& sequence) const {
  AUDIT(sequence.num_computed >= 0 && sequence.num_computed < sequence.num_tokens());
  AUDIT(sequence.num_output() <= sequence.request->stop.max_tokens);
  AUDIT(sequence.setbacks.bypasses <= options.queue.max_bypasses);
  AUDIT(sequence.level >= sequence.priority);
  AUDIT(sequence.setbacks.displacements <= sequence.setbacks.preemptions);
  AUDIT(sequence.setbacks.pinned ==
        (sequence.setbacks.displacements >= options.queue.max_preemptions));
  AUDIT(sequence.blocks.size() >= BlocksFor(sequence.num_computed));
  AUDIT(sequence.blocks.size() <= BlocksFor(sequence.num_tokens()));
  AUDIT(!sequence.forks.pending && sequence.forks.places <= 1 + sequence.forks.children);
  AUDIT(sequence.forks.children == 0 || sequence.num_output() == 0);
  if (sequence.running) {
    AUDIT(sequence.started);
    AUDIT(sequence.blocks.size() >= 1);
  } else {
    AUDIT(sequence.num_computed == 0);
    AUDIT(sequence.blocks.size() == 0);
  }
  for (int32_t i = 0; i < sequence.blocks.size(); ++i) {
    AUDIT((sequence.blocks.at(i) != BlockId::kNone) ==
              NeedsBlock(sequence.request->kv, i, sequence.num_computed),
          "a block of a window");
  }
  return AuditFindable(sequence);
}

// What can be found of a sequence is what it holds: its scope and tokens, behind the same block.
absl::Status Scheduler::State::AuditFindable(const Sequence& sequence) const {
  const PrefixIndex& index = cache.index();
  const std::span<const TokenId> tokens = sequence.tokens;
  for (int32_t i = 0; i < sequence.blocks.size(); ++i) {
    const BlockId id = sequence.blocks.at(i);
    if (id == BlockId::kNone || !index.contains(id)) continue;
    const std::span<const TokenId> found = index.tokens(id);
    const size_t begin = static_cast<size_t>(i) * kBlockTokens;
    AUDIT(begin + found.size() <= static_cast<size_t>(sequence.num_computed));
    AUDIT(std::ranges::equal(found, tokens.subspan(begin, found.size())), "block ",
          static_cast<int32_t>(id), " holds other tokens than its sequence");
    AUDIT(index.scope(id) == sequence.scope());
    const BlockId before = i == 0 ? BlockId::kNone : sequence.blocks.at(i - 1);
    AUDIT(index.parent(id) == before || (i > 0 && before == BlockId::kNone));
  }
  return absl::OkStatus();
}

absl::Status Scheduler::Audit() const {
  const State& s = *state_;
  RETURN_IF_ERROR(s.pool.Audit());
  RETURN_IF_ERROR(s.cache.index().Audit());
  std::vector<int32_t> holders(static_cast<size_t>(s.pool.total()));
  int64_t waiting_tokens = 0;
  size_t listed = s.running.items().size() + s.waiting.items().size() + s.retired.size();
  const auto audit_list = [&](std::span<Sequence* const> items, bool running) -> absl::Status {
    for (size_t i = 0; i < items.size(); ++i) {
      AUDIT(items[i]->running == running);
      AUDIT(i == 0 || (running ? items[i - 1]->Outranks(*items[i])
                               : items[i - 1]->order < items[i]->order),
            "order lost");
      RETURN_IF_ERROR(s.AuditSequence(*items[i]));
      listed += static_cast<size_t>(items[i]->forks.children);
      for (BlockId id : items[i]->blocks.ids()) {
        if (id != BlockId::kNone) ++holders[static_cast<size_t>(id)];
      }
      if (!running) waiting_tokens += items[i]->uncomputed();
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(audit_list(s.running.items(), true));
  RETURN_IF_ERROR(audit_list(s.waiting.items(), false));
  for (const Sequence* sequence : s.retired) AUDIT(sequence->blocks.size() == 0);
  AUDIT(s.waiting.tokens() == waiting_tokens, s.waiting.tokens(), ", by sum ", waiting_tokens);
  for (int32_t i = 0; i < s.pool.total(); ++i) {
    AUDIT(s.pool.ref_count(BlockId{i}) == holders[static_cast<size_t>(i)], "holders of block ", i);
  }
  size_t open = 0;
  for (const auto& [id, request] : s.live) open += static_cast<size_t>(request->open);
  AUDIT(open == listed, "a sequence is lost, or listed twice");
  const SchedulerStats stats = Stats();
  AUDIT(stats.sequences_started == stats.sequences_finished + stats.running + stats.waiting);
  AUDIT(stats.blocks_free + stats.blocks_cached + stats.blocks_used == stats.blocks_total);
  return absl::OkStatus();
}

void Scheduler::CheckInvariants() const { CHECK_OK(Audit()); }

}  // namespace quire
