#include "scheduler/simulate/capacity_search.h"

#include <algorithm>
#include <cmath>

#include "absl/log/check.h"

namespace quire {

double LargestPassing(double start, const std::function<bool(double)>& passes) {
  constexpr double kReach = 1024, kPrecision = 1.01;
  double low = start, high = start;
  if (passes(start)) {
    do {
      low = high;
      if (low >= start * kReach) return low;
      high = low * 2;
    } while (passes(high));
  } else {
    do {
      high = low;
      if (high <= start / kReach) return 0;
      low = high / 2;
    } while (!passes(low));
  }
  while (high > low * kPrecision) {
    const double middle = std::sqrt(low * high);
    (passes(middle) ? low : high) = middle;
  }
  return low;
}

std::optional<int32_t> LeastPassing(int32_t most, const std::function<bool(int32_t)>& passes) {
  int32_t failing = 0, passing = 1;
  while (!passes(passing)) {
    if (passing == most) return std::nullopt;
    failing = passing;
    passing = std::min(most, passing * 2);
  }
  while (passing - failing > 1) {
    const int32_t middle = failing + (passing - failing) / 2;
    (passes(middle) ? passing : failing) = middle;
  }
  return passing;
}

Trace AtSpeed(const Trace& trace, double factor) {
  CHECK(factor > 0);
  Trace faster{.arrivals = {}, .tenants = trace.tenants, .prefixes = trace.prefixes};
  if (trace.arrivals.empty()) return faster;
  const int64_t length = trace.arrivals.back().time_ns;
  for (int64_t round = 0;; ++round) {
    for (Arrival a : trace.arrivals) {
      const double time = static_cast<double>(round * length + a.time_ns) / factor;
      // The first arrival is kept, so that a slowed trace is never empty.
      if (time > static_cast<double>(length) && !faster.arrivals.empty()) return faster;
      a.time_ns = std::llround(time);
      faster.arrivals.push_back(a);
    }
    if (length == 0) return faster;
  }
}

}  // namespace quire
