// The JSON file of a fitted step cost: written by `quire bench --fit-cost`, read by `quire
// simulate`. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/simulate/cost_fit.h"

namespace quire {

struct CostFile {
  std::string model, cpu, isa, kv_dtype;  // what was measured, where
  int32_t threads = 0;
  int32_t context_tokens = 0;  // of the model
  int64_t kv_block_bytes = 0;
  CostFit fit;
  std::vector<CostPoint> points;  // not read back
};

std::string CostFileJson(const CostFile& file);

// FAILED_PRECONDITION with file and key.
absl::StatusOr<CostFile> ReadCostFile(const std::string& path);

}  // namespace quire
