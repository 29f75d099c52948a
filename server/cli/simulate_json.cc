#include "server/cli/simulate_json.h"

#include <algorithm>

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

Json LatencyJson(const LatencyHistogram& h) {
  return {{"mean", h.Mean() * 1e3},
          {"p50", h.Quantile(0.5) * 1e3},
          {"p90", h.Quantile(0.9) * 1e3},
          {"p99", h.Quantile(0.99) * 1e3},
          {"max", h.Max() * 1e3}};
}

}  // namespace

Json GroupsJson(std::span<const GroupTotals> groups) {
  Json all = Json::array();
  for (const GroupTotals& g : groups) {
    all.push_back({{"name", g.name},
                   {"requests", g.arrived},
                   {"completed", g.completed},
                   {"rejected", g.rejected},
                   {"expired", g.expired},
                   {"good", g.good},
                   {"prompt_tokens", g.prompt_tokens},
                   {"output_tokens", g.output_tokens},
                   {"ttft_ms", LatencyJson(g.ttft)},
                   {"itl_ms", LatencyJson(g.itl)},
                   {"e2e_ms", LatencyJson(g.e2e)}});
  }
  return all;
}

Json SimulationJson(const SimulationResult& result) {
  const Json groups = GroupsJson(result.groups);
  const SchedulerStats scheduler = result.Scheduler();
  const LoadSample mean = result.timeline.MeanUntil(result.seconds);
  const double per_s = result.seconds > 0 ? 1 / result.seconds : 0;
  Json replicas = Json::array();
  for (const ReplicaTotals& r : result.replicas) {
    replicas.push_back({{"requests", r.requests},
                        {"steps", r.steps},
                        {"utilisation", r.busy_seconds * per_s},
                        {"preemptions", r.scheduler.preemptions}});
  }
  return {{"seconds", result.seconds},
          {"offered_seconds", result.offered_seconds},
          {"output_tokens_per_s", static_cast<double>(result.all().output_tokens) * per_s},
          {"prompt_tokens_per_s", static_cast<double>(result.all().prompt_tokens) * per_s},
          {"utilisation", result.Utilisation()},
          {"preemptions", scheduler.preemptions},
          {"preemptions_for_blocks", scheduler.preemptions_for_blocks},
          {"preemptions_for_priority", scheduler.preemptions_for_priority},
          {"recompute_tokens", scheduler.recompute_tokens},
          {"prefix_query_tokens", scheduler.prefix_query_tokens},
          {"prefix_hit_tokens", scheduler.prefix_hit_tokens},
          {"kv_blocks", scheduler.blocks_total},
          {"mean_kv_blocks_used", mean.blocks_used},
          {"mean_running", mean.running},
          {"mean_waiting", mean.waiting},
          {"all", groups[0]},
          {"tenants", Json(groups.begin() + 1, groups.end())},
          {"replicas", replicas}};
}

}  // namespace quire
