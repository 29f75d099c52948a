// Whether an engine is alive, judged by the time since its last step while it has work, and whether
// its books balance; and what the server's health says of it. Any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "server/rpc/health.h"

namespace quire {

enum class Pulse : uint8_t { kFine, kStalled, kDead };

// Stalled beyond 15 s or 20 of the slowest warm-up steps, whichever is more; dead beyond four times
// that.
constexpr Pulse JudgePulse(int64_t age_ns, double slowest_step_s) {
  const double stalled_ns = 1e9 * std::max(15.0, 20 * slowest_step_s);
  const double age = static_cast<double>(age_ns);
  return age > 4 * stalled_ns ? Pulse::kDead : age > stalled_ns ? Pulse::kStalled : Pulse::kFine;
}

struct Vitals {
  int64_t pulse_age_ns = 0;
  double slowest_step_s = 0;  // of the warm-up
  uint64_t audits_failed = 0;
};

// In states READY and STALLED sets the health by the vitals; to STALLED is counted. Books that do
// not balance make it FAULTY for good. False: the engine is given up for dead.
bool SetHealth(const Vitals& vitals, Health& health, std::atomic<uint64_t>& stalls);

}  // namespace quire
