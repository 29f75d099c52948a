#include "scheduler/simulate/idle_server.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace quire {

SimulationResult SimulateIdle(const SimulationOptions& options, const CostModel& cost,
                              const Trace& trace, size_t most) {
  constexpr int64_t kMinute = 60'000'000'000;
  const size_t count = std::min(most, trace.arrivals.size());
  SimulationOptions one = options;
  one.replicas = 1;
  Trace spaced{
      .arrivals = {trace.arrivals.begin(), trace.arrivals.begin() + static_cast<ptrdiff_t>(count)},
      .tenants = trace.tenants,
      .prefixes = trace.prefixes};
  const int64_t widest = std::numeric_limits<int64_t>::max() / 4 / static_cast<int64_t>(count + 1);
  for (int64_t gap = kMinute;; gap = gap < widest / 4 ? gap * 4 : widest) {
    for (size_t i = 0; i < count; ++i) spaced.arrivals[i].time_ns = static_cast<int64_t>(i) * gap;
    SimulationResult result = Simulate(one, cost, spaced);
    const bool alone = result.all().e2e.Max() * 1e9 < static_cast<double>(gap);
    if (alone || gap == widest) return result;
  }
}

}  // namespace quire
