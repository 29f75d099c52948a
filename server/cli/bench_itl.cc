#include "server/cli/bench_itl.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "runtime/base/status_macros.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

Json RunItl(BenchEngine& engine, const ItlBenchOptions& options, double target_ms) {
  (void)engine.PromptBeside(options.streams, options.stream_tokens, options.prompt_tokens);  // warm
  std::vector<int64_t> steps;
  double seconds = 0;
  for (int32_t i = 0; i < options.repetitions; ++i) {
    const BenchStall stall =
        engine.PromptBeside(options.streams, options.stream_tokens, options.prompt_tokens);
    steps.insert(steps.end(), stall.step_nanos.begin(), stall.step_nanos.end());
    seconds += stall.prompt_seconds;
  }
  std::ranges::sort(steps);
  const auto quantile_ms = [&](double q) {
    return static_cast<double>(QuantileOf(steps, q)) * 1e-6;
  };
  const double rate = options.prompt_tokens * options.repetitions / seconds;
  std::fprintf(stderr, "bench: itl beside a prompt, target %.0f ms: p99 %.1f ms, %.0f tokens/s\n",
               target_ms, quantile_ms(0.99), rate);
  return {
      {"target_itl_ms", target_ms},
      {"itl_ms", {{"p50", quantile_ms(0.5)}, {"p99", quantile_ms(0.99)}, {"max", quantile_ms(1)}}},
      {"prompt_tps", rate}};
}

}  // namespace

absl::StatusOr<Json> BenchItl(const LoadedModel& model, WorkerPool* pool, BenchEngineOptions engine,
                              const ItlBenchOptions& options) {
  engine.runner.max_seqs = options.streams + 1;
  // A stream generates up to as many tokens as the prompt has.
  engine.runner.num_blocks =
      options.streams * BlocksFor(options.stream_tokens + options.prompt_tokens + 1) +
      BlocksFor(options.prompt_tokens + 1);
  Json results = Json::array();
  for (const double target_ms : {0.0, options.target_itl_ms}) {
    engine.target_itl_ns = static_cast<int64_t>(target_ms * 1e6);
    ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> bench,
                     BenchEngine::Create(model, pool, engine));
    results.push_back(RunItl(*bench, options, target_ms));
  }
  return results;
}

}  // namespace quire
