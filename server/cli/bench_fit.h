// `quire bench --fit-cost FILE`: measures steps of many shapes, fits the cost of a step to them,
// and writes the file that `quire simulate` reads. One thread, the owner of the pool.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/base/worker_pool.h"
#include "runtime/loader/model_loader.h"
#include "server/cli/step_grid.h"

namespace quire {

struct FitOptions {
  std::string model_path, out_path;
  int32_t threads = 0;
  GridOptions grid;
};

absl::Status FitStepCost(const LoadedModel& model, WorkerPool* pool, const FitOptions& options);

}  // namespace quire
