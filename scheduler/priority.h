// Effective priority of a waiting request: a pure function of its priority, its arrival and now.
//
// Starvation bound. A request rises one level per ageing_ns, up to kMaxPriority; the queue counts
// no level above the highest priority that waits. So once it has waited 20 x ageing_ns nobody that
// came later outranks it in the queue: of its own tenant nobody later goes first, other tenants go
// first only until they have had their share. It then waits for the work ahead of it, and for at
// most max_bypasses requests of any size that passed it. It leaves the queue with its level, and
// then only a priority above that level can displace it, at most max_preemptions times in all.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/clock.h"
#include "scheduler/queue_policy.h"

namespace quire {

// ageing_ns = 0: never rises. priority in [kMinPriority, kMaxPriority].
constexpr int32_t EffectivePriority(int32_t priority, MonotonicTime arrival, MonotonicTime now,
                                    int64_t ageing_ns) {
  if (ageing_ns <= 0 || now <= arrival) return priority;
  const int64_t risen = (Nanos(now) - Nanos(arrival)) / ageing_ns;
  return static_cast<int32_t>(std::min<int64_t>(kMaxPriority, priority + risen));
}

}  // namespace quire
