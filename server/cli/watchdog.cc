#include "server/cli/watchdog.h"

namespace quire {

bool SetHealth(const Vitals& vitals, Health& health, std::atomic<uint64_t>& stalls) {
  const ServerState now = health.state();
  if (now != ServerState::kReady && now != ServerState::kStalled) return true;
  if (vitals.audits_failed > 0) {  // no way back: the orchestrator restarts it
    health.SetState(ServerState::kFaulty);
    health.GiveUp();
    return true;
  }
  switch (JudgePulse(vitals.pulse_age_ns, vitals.slowest_step_s)) {
    case Pulse::kFine:
      if (now == ServerState::kStalled) health.SetState(ServerState::kReady);
      return true;
    case Pulse::kStalled:
      if (now != ServerState::kStalled) {
        stalls.fetch_add(1);
        health.SetState(ServerState::kStalled);
      }
      return true;
    case Pulse::kDead:
      break;
  }
  health.GiveUp();
  return false;
}

}  // namespace quire
