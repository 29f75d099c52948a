#include "scheduler/simulate/replica.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/log/check.h"
#include "scheduler/simulate/keyed_random.h"

namespace quire {
namespace {

// A step in which nothing can run, such as one that only ends requests.
constexpr int64_t kEmptyStepNanos = 1'000;

RunnerLimits LimitsOf(const ReplicaOptions& options) {
  const SchedulerOptions& s = options.scheduler;
  return {.num_blocks = options.num_blocks,
          .vocab_size = kSimulatedVocabulary,
          .context_tokens = s.context_tokens,
          .max_rows = std::max(s.step_tokens, s.max_running),
          .max_seqs = s.max_running,
          .max_logits_rows = s.max_running};
}

}  // namespace

Replica::Replica(const ReplicaOptions& options, const CostModel& cost, RequestBook* book,
                 Timeline* timeline)
    : cost_(cost),
      book_(book),
      timeline_(timeline),
      scheduler_(options.scheduler, options.num_blocks),
      builder_(LimitsOf(options)),
      shapes_(options.num_blocks) {}

void Replica::Submit(Request request) {
  ++open_;
  inbox_.push_back(std::move(request));
}

void Replica::TakeInbox() {
  for (Request& request : inbox_) {
    const RequestId id = request.id;
    if (scheduler_.Add(std::move(request)).ok()) continue;
    --open_;
    book_->Rejected(id);
  }
  inbox_.clear();
}

MonotonicTime Replica::Begin(MonotonicTime now) {
  CHECK(!in_step_);
  in_step_ = true;
  TakeInbox();
  sampled_.clear();
  const StepPlan& plan = scheduler_.Schedule(now);
  int64_t nanos = kEmptyStepNanos;
  if (plan.num_tokens > 0) {
    const StepBatch& batch = builder_.Build(plan);
    nanos = std::max<int64_t>(1, std::llround(cost_.Seconds(shapes_.Read(batch)) * 1e9));
    for (const SampleSpec& spec : builder_.specs()) {
      Sampled& drawn = sampled_.emplace_back();
      drawn.sequence = spec.sequence;
      const uint64_t bits = KeyedBits(static_cast<uint64_t>(spec.sequence.request),
                                      static_cast<uint64_t>(spec.sequence.output_index),
                                      static_cast<uint64_t>(spec.position));
      drawn.token = TokenId{static_cast<int32_t>(bits % kSimulatedVocabulary)};
    }
    scheduler_.ObserveStep(nanos);
    ++steps_;
    busy_seconds_ += static_cast<double>(nanos) * 1e-9;
  }
  step_end_ = AddNanos(now, nanos);
  const SchedulerStats stats = scheduler_.Stats();
  timeline_->Add(now, step_end_,
                 {.waiting = static_cast<double>(stats.waiting),
                  .running = static_cast<double>(stats.running),
                  .blocks_used = static_cast<double>(stats.blocks_used),
                  .busy = plan.num_tokens > 0 ? 1.0 : 0.0});
  return step_end_;
}

void Replica::End() {
  CHECK(in_step_);
  in_step_ = false;
  events_.clear();
  scheduler_.Commit(sampled_, events_);
  for (const TokenEvent& event : events_) {
    book_->Record(event, step_end_);
    open_ -= event.finish != FinishReason::kNone ? 1 : 0;
  }
}

}  // namespace quire
