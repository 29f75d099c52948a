// Whether an engine is alive, judged by the time since its last step while it has work. Pure; any
// thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace quire {

enum class Pulse : uint8_t { kFine, kStalled, kDead };

// Stalled beyond 15 s or 20 of the slowest warm-up steps, whichever is more; dead beyond four times
// that.
constexpr Pulse JudgePulse(int64_t age_ns, double slowest_step_s) {
  const double stalled_ns = 1e9 * std::max(15.0, 20 * slowest_step_s);
  const double age = static_cast<double>(age_ns);
  return age > 4 * stalled_ns ? Pulse::kDead : age > stalled_ns ? Pulse::kStalled : Pulse::kFine;
}

}  // namespace quire
