#include "server/cli/bench_runner.h"

#include <algorithm>

namespace quire {

absl::StatusOr<std::unique_ptr<CpuModelRunner>> MakeBenchRunner(const LoadedModel& model,
                                                                WorkerPool* pool,
                                                                const BenchRunnerOptions& options) {
  return CpuModelRunner::Create(model.config, model.weights,
                                {.kv_dtype = options.kv_dtype,
                                 .num_blocks = options.num_blocks,
                                 .max_rows = std::max(options.step_tokens, options.max_seqs),
                                 .max_seqs = options.max_seqs,
                                 .pool = pool});
}

void RandomTokens::FillTo(int32_t count, std::vector<TokenId>* tokens) {
  while (static_cast<int32_t>(tokens->size()) < count) {
    tokens->push_back(
        TokenId{static_cast<int32_t>(random_() % static_cast<uint64_t>(vocab_size_))});
  }
}

int64_t QuantileOf(std::span<const int64_t> sorted, double q) {
  return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
}

}  // namespace quire
