// The engine's step loop without server, clock or delivery: scheduler, batch builder, runner,
// sampler on random greedy requests that ignore EOS. For `quire bench`. One thread, the owner of
// the pool; model and pool outlive it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/worker_pool.h"
#include "runtime/loader/model_loader.h"
#include "runtime/model/cpu_model_runner.h"
#include "runtime/sampling/sampler.h"
#include "scheduler/batch_builder.h"
#include "scheduler/scheduler.h"
#include "server/cli/bench_runner.h"

namespace quire {

struct BenchEngineOptions {
  BenchRunnerOptions runner;
  int64_t target_itl_ns = 0;  // 0: the step budget is fixed
  uint64_t seed = 1;
};

// Time of the host's part of a step, beside the phases of the runner.
inline constexpr std::array<std::string_view, 3> kHostPhaseNames = {"schedule", "sample", "commit"};

// What decoding streams feel of a prompt that is computed beside them.
struct BenchStall {
  std::vector<int64_t> step_nanos;  // of the steps that had rows of the prompt
  double prompt_seconds = 0;        // from its arrival to its first token
};

struct BenchTiming {
  double seconds = 0;
  int64_t tokens = 0;               // drawn, or of the prompt
  std::vector<int64_t> step_nanos;  // of every timed step
  StepProfile profile;              // of the timed steps
  std::array<int64_t, kHostPhaseNames.size()> host_nanos{};

  double TokensPerSecond() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

class BenchEngine {
 public:
  static absl::StatusOr<std::unique_ptr<BenchEngine>> Create(const LoadedModel& model,
                                                             WorkerPool* pool,
                                                             const BenchEngineOptions& options);

  // From now on prompts begin with the same `tokens` random tokens; 0: with none. They must be
  // shorter than the prompts.
  void SharePrefix(int32_t tokens);
  // One prompt, from its arrival to its first token.
  BenchTiming Prefill(int32_t prompt_tokens);
  // `batch` prompts first, then `output_tokens` steps of all of them together, which alone are
  // timed.
  BenchTiming Decode(int32_t batch, int32_t prompt_tokens, int32_t output_tokens);
  // A prompt that arrives while `streams` sequences decode.
  BenchStall PromptBeside(int32_t streams, int32_t stream_tokens, int32_t prompt_tokens);

 private:
  BenchEngine(const LoadedModel& model, WorkerPool* pool, const BenchEngineOptions& options,
              std::unique_ptr<CpuModelRunner> runner);
  RequestId Submit(int32_t prompt_tokens, int32_t max_tokens);
  void StartAll(int32_t streams, int32_t prompt_tokens, int32_t max_tokens);
  void Step(BenchTiming* timing);

  std::unique_ptr<CpuModelRunner> runner_;
  Scheduler scheduler_;
  BatchBuilder builder_;
  Sampler sampler_;
  std::vector<Sampled> sampled_;
  std::vector<TokenEvent> events_;
  RandomTokens random_;
  std::vector<TokenId> prefix_;  // of every prompt
  uint64_t next_id_ = 1;
};

}  // namespace quire
