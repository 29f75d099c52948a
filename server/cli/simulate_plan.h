// What `quire simulate` works out: one run of the traffic, or the largest rate or the fewest
// servers that meet the objective. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/simulate/generate_arrivals.h"
#include "scheduler/simulate/simulation.h"
#include "server/cli/cost_file.h"
#include "server/cli/simulate_flags.h"

namespace quire {

// The traffic of the flags, at any rate.
class Traffic {
 public:
  // INVALID_ARGUMENT (a flag) or FAILED_PRECONDITION (the file).
  static absl::StatusOr<Traffic> Of(const SimulateFlags& flags, const SimulationOptions& options);

  const Trace& trace() const { return trace_; }
  double rate() const { return rate_; }  // requests per second
  // Nothing beyond what can be generated, and where no request arrives: that would meet any
  // objective.
  std::optional<Trace> At(double rate) const;

 private:
  Trace trace_;
  bool generated_ = false;
  ArrivalOptions arrivals_;
  double rate_ = 0;
};

struct Answer {
  SimulationResult result{};
  double rate = 0;  // simulated
  // What an idle server gives, if something was searched.
  std::optional<SimulationResult> idle{};
  std::optional<double> found_rate{};
  std::optional<int32_t> found_replicas{};
  std::string missed;  // why a search found nothing; empty: it found, or there was none
};

// Tells on standard error what it tries.
Answer PlanCapacity(const SimulateFlags& flags, const SimulationOptions& options,
                    const CostFile& cost, const Traffic& traffic);

}  // namespace quire
