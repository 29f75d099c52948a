#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/log/check.h"
#include "absl/log/log.h"
#include "absl/time/time.h"
#include "runtime/sampling/sampler.h"
#include "runtime/step_batch.h"
#include "scheduler/batch_builder.h"
#include "server/engine/engine.h"

// Order at the end of a step: numbers out, slots free, events out. So whoever sees a request end
// finds its blocks returned, its slot free and its numbers counted.
namespace quire {
namespace {

SequenceEnd EndOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return SequenceEnd::kStop;
    case FinishReason::kLength:
      return SequenceEnd::kLength;
    case FinishReason::kTimeLimit:
      return SequenceEnd::kTimeLimit;
    case FinishReason::kError:
      return SequenceEnd::kError;
    default:
      return SequenceEnd::kAborted;
  }
}

StepPhase PhaseOf(const StepPlan& plan) {
  bool prefill = false, decode = false;
  for (const PlannedSeq& seq : plan.seqs) {
    (seq.num_computed < seq.num_prompt ? prefill : decode) = true;
  }
  return prefill ? (decode ? StepPhase::kMixed : StepPhase::kPrefill) : StepPhase::kDecode;
}

constexpr int64_t kAuditEveryNs = 1'000'000'000;

// The inbox is the door: whoever it let in is never refused for the length of the queue, even if
// batch and queue fill up within one step.
SchedulerOptions Widen(SchedulerOptions options, const InboxLimits& door) {
  options.max_waiting = std::max(options.max_waiting, door.sequences);
  options.max_waiting_tokens = INT64_MAX;
  return options;
}

// Adds the time since the last call to a stage; one clock read per stage.
class StageTimer {
 public:
  StageTimer(const Clock* clock, StepStats& stats)
      : clock_(clock), stats_(stats), last_(clock->Now()) {}
  MonotonicTime Done(StepStage stage) {
    const MonotonicTime now = clock_->Now();
    stats_.stage_seconds[static_cast<size_t>(stage)] += SecondsBetween(last_, now);
    return last_ = now;
  }
  MonotonicTime last() const { return last_; }

 private:
  const Clock* clock_;
  StepStats& stats_;
  MonotonicTime last_;
};

}  // namespace

struct EngineCore::State {
  State(const SchedulerOptions& options, const EngineLinks& engine_links)
      : links(engine_links),
        limits(links.runner->Limits()),
        scheduler(Widen(options, links.inbox->limits()), limits.num_blocks),
        builder(limits),
        sampler({.vocab_size = limits.vocab_size, .pool = links.pool}) {
    CHECK_LE(options.step_tokens, limits.max_rows);
    CHECK_LE(options.max_running, limits.max_seqs);
    CHECK_LE(options.max_running, limits.max_logits_rows);
    CHECK_LE(options.context_tokens, limits.context_tokens);
    sampled.resize(static_cast<size_t>(limits.max_logits_rows));
    UpdateGauges();
    published.Store(stats);
  }

  void ApplyMessages();
  void Compute(const StepPlan& plan, StageTimer& timer);
  void CountEnds();
  void UpdateGauges();
  void Audit(MonotonicTime now);

  const EngineLinks links;
  const RunnerLimits limits;
  Scheduler scheduler;
  BatchBuilder builder;
  Sampler sampler;
  InboxMessages messages;
  EventBatch events;
  std::vector<Sampled> sampled;  // of this step: the first num_sampled
  size_t num_sampled = 0;
  std::vector<RequestId> ended;  // requests whose last sequence ended in this step
  absl::flat_hash_map<RequestId, int32_t> open_outputs;  // of requests with more than one output
  StepStats stats;
  Seqlock<StepStats> published;
  std::atomic<int64_t> pulse_ns{0};
  std::atomic<bool> busy{false};
  bool audit_due = false;  // something ended since the last one
  MonotonicTime next_audit{};
};

EngineCore::EngineCore(const SchedulerOptions& options, const EngineLinks& links)
    : state_(std::make_unique<State>(options, links)) {}

EngineCore::~EngineCore() = default;

void EngineCore::State::ApplyMessages() {
  links.inbox->Drain(messages);
  for (Request& request : messages.submits) {
    const RequestId id = request.id;
    const int32_t outputs = request.num_sequences;
    CHECK_OK(scheduler.Add(std::move(request))) << "the intake lets in what fits, nothing else";
    ++stats.accepted;
    if (outputs > 1) open_outputs.emplace(id, outputs);
  }
  for (const SequenceId& id : messages.ends) scheduler.AbortOutput(id, FinishReason::kStop);
  for (const auto& [id, reason] : messages.aborts) scheduler.Abort(id, reason);
  for (const auto& [id, paused] : messages.pauses) scheduler.SetPaused(id, paused);
}

void EngineCore::State::Compute(const StepPlan& plan, StageTimer& timer) {
  const StepPhase phase = PhaseOf(plan);
  const MonotonicTime begin = timer.last();
  const StepBatch& batch = builder.Build(plan);
  timer.Done(StepStage::kBuild);
  const StepOutput output = links.runner->Forward(batch);
  timer.Done(StepStage::kForward);
  const std::span<SampleSpec> specs = builder.specs();
  num_sampled = specs.size();
  sampler.Sample(output.logits, specs, std::span(sampled).first(num_sampled));
  const MonotonicTime end = timer.Done(StepStage::kSample);
  scheduler.ObserveStep(Nanos(end) - Nanos(begin));
  const double seconds = SecondsBetween(begin, end);
  ++stats.step;
  stats.step_seconds[static_cast<size_t>(phase)].Observe(seconds);
  stats.step_tokens.Observe(plan.num_tokens);
  stats.step_sequences.Observe(static_cast<double>(plan.seqs.size()));
}

void EngineCore::State::CountEnds() {
  for (const TokenEvent& event : events.tokens) {
    if (event.finish == FinishReason::kNone) continue;
    ++stats.sequences_finished[static_cast<size_t>(EndOf(event.finish))];
    const RequestId id = event.sequence.request;
    if (const auto it = open_outputs.find(id); it != open_outputs.end()) {
      if (--it->second > 0) continue;
      open_outputs.erase(it);
    }
    ended.push_back(id);
  }
}

void EngineCore::State::UpdateGauges() {
  const SchedulerStats now = scheduler.Stats();
  stats.running = now.running;
  stats.waiting = now.waiting;
  stats.waiting_tokens = now.waiting_tokens;
  stats.prompt_backlog = now.prompt_backlog;
  stats.blocks_total = now.blocks_total;
  stats.blocks_used = now.blocks_used;
  stats.blocks_cached = now.blocks_cached;
  stats.blocks_free = now.blocks_free;
  stats.sequences_started = static_cast<uint64_t>(now.sequences_started);
  stats.preemptions = {static_cast<uint64_t>(now.preemptions_for_blocks),
                       static_cast<uint64_t>(now.preemptions_for_priority),
                       static_cast<uint64_t>(now.preemptions_of_paused)};
  stats.rates = now.rates;
  stats.prefix_query_tokens = static_cast<uint64_t>(now.prefix_query_tokens);
  stats.prefix_hit_tokens = static_cast<uint64_t>(now.prefix_hit_tokens);
  stats.block_evictions = static_cast<uint64_t>(now.block_evictions);
  stats.prefill_tokens = static_cast<uint64_t>(now.prefill_tokens);
  stats.recompute_tokens = static_cast<uint64_t>(now.recompute_tokens);
  stats.decode_tokens = static_cast<uint64_t>(now.decode_tokens);
}

bool EngineCore::Step() {
  State& s = *state_;
  StageTimer timer(s.links.clock, s.stats);
  s.pulse_ns.store(Nanos(timer.last()), std::memory_order_relaxed);
  s.busy.store(true, std::memory_order_release);
  s.ended.clear();
  s.num_sampled = 0;

  s.ApplyMessages();
  const StepPlan& plan = s.scheduler.Schedule(timer.last());
  const bool computes = plan.num_tokens > 0;
  const MonotonicTime scheduled = timer.Done(StepStage::kSchedule);
  for (const SequenceId& sequence : plan.admitted) {
    const auto seq = std::ranges::find(plan.seqs, sequence, &PlannedSeq::id);
    s.events.admitted.push_back({.sequence = sequence,
                                 .at = scheduled,
                                 .cached_tokens = seq == plan.seqs.end() ? 0 : seq->num_computed});
  }
  s.links.inbox->MarkStarted(plan.admitted);
  if (computes) s.Compute(plan, timer);
  s.scheduler.Commit(std::span(s.sampled).first(s.num_sampled), s.events.tokens);
  s.CountEnds();
  s.UpdateGauges();
  s.audit_due = s.audit_due || !s.ended.empty();
  s.events.at = timer.Done(StepStage::kCommit);

  s.published.Store(s.stats);
  s.links.inbox->Finished(s.ended);
  if (!s.events.empty()) s.links.events->Publish(s.events);
  const MonotonicTime end = timer.Done(StepStage::kPublish);
  if (s.audit_due && s.stats.running + s.stats.waiting == 0) s.Audit(end);
  s.pulse_ns.store(Nanos(end), std::memory_order_relaxed);
  s.busy.store(s.scheduler.HasWork(), std::memory_order_release);
  return computes;
}

// An idle moment costs nobody anything, and at that moment the books must balance to the last
// block. At most once a second, as a light load is idle between any two requests.
void EngineCore::State::Audit(MonotonicTime now) {
  if (now < next_audit) return;
  audit_due = false;
  next_audit = AddNanos(now, kAuditEveryNs);
  absl::Status books = scheduler.Audit();
  if (books.ok()) books = links.inbox->Audit();
  if (books.ok() && links.audit) books = links.audit();
  ++(books.ok() ? stats.audits_ok : stats.audits_failed);
  if (!books.ok()) LOG(ERROR) << "the books do not balance: " << books.message();
  published.Store(stats);
}

absl::Duration EngineCore::IdleTime() const {
  if (state_->scheduler.HasWork()) return absl::ZeroDuration();
  MonotonicTime next = state_->scheduler.NextDeadline();
  if (state_->audit_due) next = std::min(next, state_->next_audit);
  if (next == MonotonicTime::kInfinite) return absl::InfiniteDuration();
  const MonotonicTime now = state_->links.clock->Now();
  return next <= now ? absl::ZeroDuration() : absl::Nanoseconds(Nanos(next) - Nanos(now));
}

StepStats EngineCore::Stats() const { return state_->published.Load(); }

int64_t EngineCore::PulseAgeNs(MonotonicTime now) const {
  if (!state_->busy.load(std::memory_order_acquire)) return 0;
  const int64_t age = Nanos(now) - state_->pulse_ns.load(std::memory_order_relaxed);
  return age > 0 ? age : 0;
}

void EngineCore::CheckInvariants() const { state_->scheduler.CheckInvariants(); }

}  // namespace quire
