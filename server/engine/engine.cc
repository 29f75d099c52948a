#include "server/engine/engine.h"

#include <utility>

#include "absl/log/check.h"

namespace quire {

Engine::Engine(const SchedulerOptions& options, const EngineLinks& links,
               std::function<void(const StepStats&)> on_step)
    : links_(links), on_step_(std::move(on_step)), core_(options, links) {}

Engine::~Engine() { Stop(); }

void Engine::Start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { Loop(); });
}

void Engine::Stop() {
  stopping_.store(true, std::memory_order_release);
  links_.inbox->Wake();
  if (thread_.joinable()) thread_.join();
}

int64_t Engine::PulseAgeNs() const { return core_.PulseAgeNs(links_.clock->Now()); }

void Engine::Loop() {
  if (links_.pool != nullptr) links_.pool->PinOwner();
  while (!stopping_.load(std::memory_order_acquire)) {
    core_.Step();
    if (on_step_) on_step_(core_.Stats());
    const absl::Duration idle = core_.IdleTime();
    if (idle > absl::ZeroDuration()) links_.inbox->WaitForWork(idle);
  }
}

bool DrainRequests(Intake& intake, Inbox& inbox, absl::Duration timeout) {
  intake.StartDraining();
  inbox.AbortNotStarted(FinishReason::kShutdown);
  if (inbox.WaitUntilEmpty(timeout)) return true;
  inbox.AbortAll(FinishReason::kShutdown);
  // One step, at most one prefill chunk, ends them all; the bound is for an engine that does not
  // step.
  inbox.WaitUntilEmpty(absl::Seconds(5));
  return false;
}

}  // namespace quire
