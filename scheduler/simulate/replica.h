// One server of a simulation: the production scheduler and batch builder on virtual time. A step
// takes what the cost model says of its batch; tokens are made up. As in the real engine, what
// arrives during a step is added at the next one. One thread; book and timeline outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/sampling/sample_spec.h"
#include "scheduler/batch_builder.h"
#include "scheduler/scheduler.h"
#include "scheduler/simulate/request_book.h"
#include "scheduler/simulate/step_cost.h"
#include "scheduler/simulate/timeline.h"

namespace quire {

struct ReplicaOptions {
  SchedulerOptions scheduler;
  int32_t num_blocks = 0;
};

inline constexpr int32_t kSimulatedVocabulary = 1 << 20;

class Replica {
 public:
  Replica(const ReplicaOptions& options, const CostModel& cost, RequestBook* book,
          Timeline* timeline);

  void Submit(Request request);
  bool in_step() const { return in_step_; }
  bool HasWork() const { return !inbox_.empty() || scheduler_.HasWork(); }
  // Not in a step, has work: one begins. Returns when it will end; End() is then due.
  MonotonicTime Begin(MonotonicTime now);
  void End();

  int32_t open() const { return open_; }  // requests it has, in the inbox too
  double busy_seconds() const { return busy_seconds_; }
  int64_t steps() const { return steps_; }
  SchedulerStats Stats() const { return scheduler_.Stats(); }

 private:
  void TakeInbox();

  const CostModel& cost_;
  RequestBook* book_;
  Timeline* timeline_;
  Scheduler scheduler_;
  BatchBuilder builder_;
  ShapeReader shapes_;
  std::vector<Request> inbox_;
  std::vector<Sampled> sampled_;
  std::vector<TokenEvent> events_;
  bool in_step_ = false;
  MonotonicTime step_end_{};
  int32_t open_ = 0;
  int64_t steps_ = 0;
  double busy_seconds_ = 0;
};

}  // namespace quire
