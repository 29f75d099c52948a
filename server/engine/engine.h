// The engine loop: drain the inbox, schedule, build, forward, sample, commit, publish. EngineCore
// is the loop body without threads (tests, bench); Engine owns the engine thread, which is worker 0
// of the worker pool. Nothing in a step blocks on, allocates for, or fails because of a request's
// data.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/seqlock.h"
#include "runtime/base/worker_pool.h"
#include "runtime/model_runner.h"
#include "scheduler/scheduler.h"
#include "server/engine/inbox.h"
#include "server/engine/intake.h"
#include "server/engine/step_events.h"
#include "server/engine/step_stats.h"

namespace quire {

// All outlive the engine.
struct EngineLinks {
  ModelRunner* runner = nullptr;
  // Shares out the sampling; may be null. The engine thread is its owner thread.
  WorkerPool* pool = nullptr;
  Inbox* inbox = nullptr;
  StepEvents* events = nullptr;
  const Clock* clock = nullptr;
  // Further books that must balance when the engine is idle; optional, engine thread.
  std::function<absl::Status()> audit{};
};

class EngineCore {
 public:
  EngineCore(const SchedulerOptions& options, const EngineLinks& links);
  ~EngineCore();

  // One pass of the loop body. Engine thread only. True: tokens were computed.
  bool Step();
  // How long an idle engine may sleep; zero if there is work. Engine thread only.
  absl::Duration IdleTime() const;

  StepStats Stats() const;  // any thread
  // Nanoseconds since the last step while work is runnable; 0 when idle. Any thread.
  int64_t PulseAgeNs(MonotonicTime now) const;
  void CheckInvariants() const;  // dies of books that do not balance; engine thread only

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Engine {
 public:
  // `on_step` (optional) is called on the engine thread after each step's stats are out.
  Engine(const SchedulerOptions& options, const EngineLinks& links,
         std::function<void(const StepStats&)> on_step = nullptr);
  ~Engine();  // Stop

  void Start();
  void Stop();  // after the step in progress; requests still live get no more tokens

  StepStats Stats() const { return core_.Stats(); }
  int64_t PulseAgeNs() const;

 private:
  void Loop();

  const EngineLinks links_;
  std::function<void(const StepStats&)> on_step_;
  EngineCore core_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// First half of a shutdown: refuse new requests, end those never scheduled (UNAVAILABLE DRAINING),
// let the rest finish for up to `timeout`, then end them (UNAVAILABLE SHUTDOWN). True: nothing had
// to be cut off. The threads still run; stop them after it, in reverse order of start: Intake,
// Engine, Delivery.
bool DrainRequests(Intake& intake, Inbox& inbox, absl::Duration timeout);

}  // namespace quire
