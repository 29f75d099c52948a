// Who goes first, as options: plain values, set at start, read by the scheduler only.
#pragma once

#include <cstdint>
#include <vector>

namespace quire {

inline constexpr int32_t kMinPriority = -10, kMaxPriority = 10;
// Tenants are indices below this; what names them is the server's.
inline constexpr int32_t kMaxTenants = 1024;

struct QueuePolicy {
  // Arrival order alone: no priorities, no shares, nobody is passed.
  bool fcfs = false;
  // A waiting request rises by one priority level each time it has waited so long; 0 = never. The
  // default lifts it over all 21 levels within the default queue age.
  int64_t ageing_ns = 5'000'000'000;
  // So often a waiting request that does not fit may be passed; then room is kept for it.
  int32_t max_bypasses = 16;
  // So often a sequence may lose its blocks to others while it could run; then it keeps them.
  int32_t max_preemptions = 8;
  // By tenant, > 0; a tenant beyond the list has weight 1.
  std::vector<double> tenant_weights;
};

}  // namespace quire
