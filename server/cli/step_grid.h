// Measures steps of many shapes on a real model: so many decoding sequences at this context, so
// many prompt rows behind that one. What `quire bench --fit-cost` fits a cost model to. One thread,
// the owner of the pool; model and pool outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/worker_pool.h"
#include "runtime/loader/model_loader.h"
#include "runtime/model/cpu_model_runner.h"
#include "scheduler/simulate/cost_fit.h"

namespace quire {

struct GridOptions {
  int32_t step_tokens = 128;  // most rows of a step
  int32_t max_seqs = 64;
  int32_t max_kv_tokens = 16384;  // of all sequences of a step: memory of the KV pool
  int32_t passes = 5;             // over all shapes; the median of a shape counts
  KvDType kv_dtype = KvDType::kInt8;
};

// One line per pass goes to standard error.
absl::StatusOr<std::vector<CostPoint>> MeasureSteps(const LoadedModel& model, WorkerPool* pool,
                                                    const GridOptions& options);

}  // namespace quire
