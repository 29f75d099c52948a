// The flags of `quire simulate`, and the traffic and servers they describe. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/simulate/generate_arrivals.h"
#include "scheduler/simulate/simulation.h"
#include "server/cli/cost_file.h"

namespace CLI {
class App;
}

namespace quire {

struct SimulateFlags {
  std::string cost;
  // Traffic: a trace, or generated.
  std::string trace, save_trace;
  double rate = 0, seconds = 300;
  uint64_t seed = 1;
  std::string prompt_tokens = "lognormal:200:0.8", output_tokens = "lognormal:100:0.7";
  std::string tenants;
  int32_t prefixes = 0, prefix_tokens = 256;
  double prefix_share = 1;
  // Servers.
  int32_t replicas = 1, max_replicas = 256;
  std::string routing = "least-loaded";
  std::string kv_cache_bytes = "2GiB";
  int32_t max_context = 0;
  SchedulerOptions scheduler;
  int64_t max_queue_ms = 120'000;
  std::string prefix_cache = "on", scheduling = "fair", tenant_weights;
  int64_t target_itl_ms = 0, ageing_ms = 5'000;
  // What to answer, and how.
  std::string slo, plot;
  double slo_target = 0.99;
  bool find_rate = false, find_replicas = false, json = false;

  void AddTo(CLI::App& app);

  // INVALID_ARGUMENT (a flag) or FAILED_PRECONDITION (a file) with what was wanted.
  absl::Status CheckTogether() const;
  absl::StatusOr<ArrivalOptions> Arrivals(const SimulationOptions& options) const;
  absl::StatusOr<SimulationOptions> Options(const CostFile& cost) const;
  // By tenant of the traffic; tenants that the flag does not name weigh 1.
  absl::StatusOr<std::vector<double>> TenantWeights(const std::vector<std::string>& names) const;

 private:
  void AddTraffic(CLI::App& app);
  void AddServers(CLI::App& app);
  void AddAnswers(CLI::App& app);
};

}  // namespace quire
