// What the parts of `quire bench` make and read alike: the model runner, random tokens, quantiles
// of times. One thread, the owner of the pool; model and pool outlive the runner.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/ids.h"
#include "runtime/base/worker_pool.h"
#include "runtime/loader/model_loader.h"
#include "runtime/model/cpu_model_runner.h"

namespace quire {

struct BenchRunnerOptions {
  int32_t step_tokens = 128;  // most rows of a step, or max_seqs if these are more
  int32_t max_seqs = 1;
  int32_t num_blocks = 1;
  KvDType kv_dtype = KvDType::kInt8;
};

absl::StatusOr<std::unique_ptr<CpuModelRunner>> MakeBenchRunner(const LoadedModel& model,
                                                                WorkerPool* pool,
                                                                const BenchRunnerOptions& options);

class RandomTokens {
 public:
  RandomTokens(int32_t vocab_size, uint64_t seed) : vocab_size_(vocab_size), random_(seed) {}

  // Appends tokens until there are `count`.
  void FillTo(int32_t count, std::vector<TokenId>* tokens);

 private:
  const int32_t vocab_size_;
  std::mt19937_64 random_;
};

// `sorted` holds at least one; q in 0..1.
int64_t QuantileOf(std::span<const int64_t> sorted, double q);

}  // namespace quire
