#include "server/cli/bench_engine.h"

#include <chrono>
#include <utility>

#include "absl/log/check.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"

namespace quire {
namespace {

int64_t NowNanos() { return Nanos(SteadyClock().Now()); }

SchedulerOptions SchedulerOptionsFor(const RunnerLimits& limits, int64_t target_itl_ns) {
  SchedulerOptions options;
  options.context_tokens = limits.context_tokens;
  options.step_tokens = limits.max_rows;
  options.max_running = limits.max_seqs;
  options.max_waiting = limits.max_seqs;
  options.max_waiting_tokens = int64_t{limits.context_tokens} * limits.max_seqs;
  options.max_queue_ns = INT64_MAX / 4;
  options.target_itl_ns = target_itl_ns;
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchEngine>> BenchEngine::Create(
    const LoadedModel& model, WorkerPool* pool, const BenchEngineOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<CpuModelRunner> runner,
                   MakeBenchRunner(model, pool, options.runner));
  return std::unique_ptr<BenchEngine>(new BenchEngine(model, pool, options, std::move(runner)));
}

BenchEngine::BenchEngine(const LoadedModel& model, WorkerPool* pool,
                         const BenchEngineOptions& options, std::unique_ptr<CpuModelRunner> runner)
    : runner_(std::move(runner)),
      scheduler_(SchedulerOptionsFor(runner_->Limits(), options.target_itl_ns),
                 options.runner.num_blocks),
      builder_(runner_->Limits()),
      sampler_({.vocab_size = model.config.vocab_size, .pool = pool}),
      sampled_(static_cast<size_t>(options.runner.max_seqs)),
      random_(model.config.vocab_size, options.seed) {}

void BenchEngine::SharePrefix(int32_t tokens) {
  prefix_.clear();
  random_.FillTo(tokens, &prefix_);
}

RequestId BenchEngine::Submit(int32_t prompt_tokens, int32_t max_tokens) {
  Request request;
  request.id = RequestId{next_id_++};
  request.prompt = prefix_;
  random_.FillTo(prompt_tokens, &request.prompt);
  request.sampling.temperature = 0;
  request.stop.max_tokens = max_tokens;
  request.stop.ignore_eos = true;
  const RequestId id = request.id;
  CHECK_OK(scheduler_.Add(std::move(request)));
  return id;
}

void BenchEngine::Step(BenchTiming* timing) {
  const int64_t start = NowNanos();
  events_.clear();
  const StepPlan& plan = scheduler_.Schedule(MonotonicTime{start});
  std::span<Sampled> drawn;
  int64_t built = start, ran = start, sampled = start;
  if (plan.num_tokens > 0) {
    const StepBatch& batch = builder_.Build(plan);
    built = NowNanos();
    const StepOutput out = runner_->Forward(batch);
    ran = NowNanos();
    drawn = std::span(sampled_).first(builder_.specs().size());
    sampler_.Sample(out.logits, builder_.specs(), drawn);
    sampled = NowNanos();
    scheduler_.ObserveStep(sampled - start);
  }
  scheduler_.Commit(drawn, events_);
  if (timing == nullptr) return;
  const int64_t end = NowNanos();
  timing->step_nanos.push_back(end - start);
  timing->host_nanos[0] += built - start;
  timing->host_nanos[1] += sampled - ran;
  timing->host_nanos[2] += end - sampled;
}

BenchTiming BenchEngine::Prefill(int32_t prompt_tokens) {
  BenchTiming timing;
  timing.tokens = prompt_tokens;
  (void)Submit(prompt_tokens, 1);
  runner_->SetProfile(&timing.profile);
  const int64_t start = NowNanos();
  while (scheduler_.HasWork()) Step(&timing);
  timing.seconds = static_cast<double>(NowNanos() - start) * 1e-9;
  runner_->SetProfile(nullptr);
  return timing;
}

// A sequence that has its first token waits for the others, so that generation runs with the whole
// batch.
void BenchEngine::StartAll(int32_t streams, int32_t prompt_tokens, int32_t max_tokens) {
  std::vector<RequestId> ids;
  for (int32_t i = 0; i < streams; ++i) ids.push_back(Submit(prompt_tokens, max_tokens));
  for (int32_t ready = 0; ready < streams;) {
    Step(nullptr);
    for (const TokenEvent& event : events_) {
      scheduler_.SetPaused(event.sequence.request, true);
      ++ready;
    }
  }
  for (RequestId id : ids) scheduler_.SetPaused(id, false);
}

BenchTiming BenchEngine::Decode(int32_t batch, int32_t prompt_tokens, int32_t output_tokens) {
  StartAll(batch, prompt_tokens, output_tokens + 1);
  BenchTiming timing;
  timing.step_nanos.reserve(static_cast<size_t>(output_tokens) + 1);
  runner_->SetProfile(&timing.profile);
  const int64_t start = NowNanos();
  while (scheduler_.HasWork()) {
    Step(&timing);
    timing.tokens += static_cast<int64_t>(events_.size());
  }
  timing.seconds = static_cast<double>(NowNanos() - start) * 1e-9;
  runner_->SetProfile(nullptr);
  return timing;
}

BenchStall BenchEngine::PromptBeside(int32_t streams, int32_t stream_tokens,
                                     int32_t prompt_tokens) {
  // They outlive the prompt even if each of its steps has the smallest chunk; then they are ended.
  StartAll(streams, stream_tokens, prompt_tokens);
  for (int i = 0; i < 20; ++i) Step(nullptr);
  const RequestId prompt = Submit(prompt_tokens, 1);
  BenchTiming timing;
  const int64_t start = NowNanos();
  for (bool done = false; !done;) {
    Step(&timing);
    for (const TokenEvent& event : events_) done = done || event.sequence.request == prompt;
  }
  const double seconds = static_cast<double>(NowNanos() - start) * 1e-9;
  for (auto id = static_cast<uint64_t>(prompt) - static_cast<uint64_t>(streams);
       id < static_cast<uint64_t>(prompt); ++id) {
    scheduler_.Abort(RequestId{id}, FinishReason::kAborted);
  }
  while (scheduler_.HasWork()) Step(nullptr);
  return {.step_nanos = std::move(timing.step_nanos), .prompt_seconds = seconds};
}

}  // namespace quire
