// From measured steps to a cost model: least squares of the relative error with coefficients that
// are not negative, so that terms which always come together cannot cancel each other and no shape
// is ever predicted to cost less than nothing. A pure function.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "scheduler/simulate/step_cost.h"

namespace quire {

struct CostPoint {
  BatchShape shape;
  double seconds = 0;  // measured, > 0
};

struct CostFit {
  CostModel model;
  // Of |predicted - measured| / measured over the points.
  double rms_error = 0, p50_error = 0, p90_error = 0, max_error = 0;
};

// INVALID_ARGUMENT for no points, or for a time that is not positive and finite.
absl::StatusOr<CostFit> FitCost(std::span<const CostPoint> points);

}  // namespace quire
