// A trace against a number of replicas behind a router, on virtual time: deterministic, and as fast
// as the scheduler itself. Pure; one thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "scheduler/simulate/replica.h"
#include "scheduler/simulate/request_book.h"
#include "scheduler/simulate/step_cost.h"
#include "scheduler/simulate/timeline.h"
#include "scheduler/simulate/trace.h"

namespace quire {

enum class Routing : uint8_t {
  kRoundRobin,
  kLeastLoaded,     // fewest open requests
  kPrefixAffinity,  // requests with the same prefix go to the same replica, others as kLeastLoaded
};

struct SimulationOptions {
  ReplicaOptions replica;
  int32_t replicas = 1;
  Routing routing = Routing::kLeastLoaded;
  LatencyObjective objective;
};

struct ReplicaTotals {
  int64_t requests = 0, steps = 0;
  double busy_seconds = 0;
  SchedulerStats scheduler;
};

struct SimulationResult {
  std::vector<GroupTotals> groups{};  // all, then by tenant
  std::vector<ReplicaTotals> replicas{};
  Timeline timeline{};
  double seconds = 0;          // until the last request had ended
  double offered_seconds = 0;  // of arrivals

  const GroupTotals& all() const { return groups[0]; }
  double Attainment() const;         // good / arrived; 1 if nothing arrived
  double Utilisation() const;        // mean part of the time that a replica was in a step
  SchedulerStats Scheduler() const;  // counters and blocks summed over the replicas
};

SimulationResult Simulate(const SimulationOptions& options, const CostModel& cost,
                          const Trace& trace);

}  // namespace quire
