// The interface between the engine and a model: one call per step. Engine thread only, not
// re-entrant.
#pragma once

#include "runtime/step_batch.h"

namespace quire {

class ModelRunner {
 public:
  virtual ~ModelRunner() = default;
  virtual RunnerLimits Limits() const = 0;  // constant after construction
  // Total: no error, no exception, no allocation. `batch` is within Limits().
  virtual StepOutput Forward(const StepBatch& batch) = 0;
};

}  // namespace quire
