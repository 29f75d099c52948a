// What a target inter-token latency does: streams decode, a long prompt arrives, and the steps that
// compute it are timed, with a fixed step budget and with one that adapts to the target. For `quire
// bench`. One thread, the owner of the pool.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "server/cli/bench_engine.h"

namespace quire {

struct ItlBenchOptions {
  int32_t streams = 8, stream_tokens = 128;  // sequences that decode, and their prompts
  int32_t prompt_tokens = 2048;              // of the prompt that arrives
  double target_itl_ms = 0;
  int32_t repetitions = 3;
};

// [{target_itl_ms, itl_ms: {p50, p99, max}, prompt_tps}]: without target, then with it. `engine`
// gives what both have in common.
absl::StatusOr<nlohmann::ordered_json> BenchItl(const LoadedModel& model, WorkerPool* pool,
                                                BenchEngineOptions engine,
                                                const ItlBenchOptions& options);

}  // namespace quire
