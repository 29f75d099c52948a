#include "scheduler/simulate/report_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace quire {
namespace {

std::string Percentiles(const LatencyHistogram& h, double scale, int decimals) {
  return absl::StrFormat("%9.*f %8.*f %8.*f", decimals, h.Quantile(0.5) * scale, decimals,
                         h.Quantile(0.9) * scale, decimals, h.Quantile(0.99) * scale);
}

}  // namespace

std::string LatencyTable(std::span<const GroupTotals> groups, double seconds) {
  if (groups.size() == 2) groups = groups.first(1);  // one tenant is all
  size_t width = 6;
  for (const GroupTotals& g : groups) width = std::max(width, g.name.size());
  const int w = static_cast<int>(width);
  std::string text = absl::StrFormat("%-*s %9s %9s %9s %9s %11s %11s\n", w, "tenant", "requests",
                                     "done", "rejected", "expired", "prompt/s", "output/s");
  for (const GroupTotals& g : groups) {
    const double per_s = seconds > 0 ? 1 / seconds : 0;
    absl::StrAppendFormat(&text, "%-*s %9d %9d %9d %9d %11.1f %11.1f\n", w, g.name, g.arrived,
                          g.completed, g.rejected, g.expired,
                          static_cast<double>(g.prompt_tokens) * per_s,
                          static_cast<double>(g.output_tokens) * per_s);
  }
  absl::StrAppendFormat(&text, "\n%-*s %27s %27s %27s\n", w, "", "time to first token, ms",
                        "between tokens, ms", "end to end, s");
  absl::StrAppendFormat(&text, "%-*s", w, "tenant");
  for (int i = 0; i < 3; ++i) absl::StrAppendFormat(&text, " %9s %8s %8s", "p50", "p90", "p99");
  text += "\n";
  for (const GroupTotals& g : groups) {
    absl::StrAppendFormat(&text, "%-*s %s %s %s\n", w, g.name, Percentiles(g.ttft, 1e3, 1),
                          Percentiles(g.itl, 1e3, 1), Percentiles(g.e2e, 1, 2));
  }
  return text;
}

std::string ReplicaTable(const SimulationResult& result) {
  const SchedulerStats total = result.Scheduler();
  const LoadSample mean = result.timeline.MeanUntil(result.seconds);
  const double blocks = std::max(1, total.blocks_total);
  double busiest = 0;
  for (const ReplicaTotals& r : result.replicas) busiest = std::max(busiest, r.busy_seconds);
  int64_t steps = 0;
  for (const ReplicaTotals& r : result.replicas) steps += r.steps;
  std::string text =
      absl::StrFormat("replicas    %d; busy %.1f %% of %.1f s (busiest %.1f %%); %d steps\n",
                      result.replicas.size(), 100 * result.Utilisation(), result.seconds,
                      result.seconds > 0 ? 100 * busiest / result.seconds : 0, steps);
  absl::StrAppendFormat(&text, "sequences   %.1f running, %.1f waiting on average\n", mean.running,
                        mean.waiting);
  absl::StrAppendFormat(&text, "KV blocks   %.1f of %d used on average (%.1f %%)\n",
                        mean.blocks_used, total.blocks_total, 100 * mean.blocks_used / blocks);
  absl::StrAppendFormat(
      &text,
      "preemptions %d for blocks, %d for priority; rows: %d prompt, %d recomputed, %d decoded\n",
      total.preemptions_for_blocks, total.preemptions_for_priority, total.prefill_tokens,
      total.recompute_tokens, total.decode_tokens);
  if (total.prefix_query_tokens > 0) {
    absl::StrAppendFormat(&text, "prefix      %.1f %% of %d prompt tokens found in the cache\n",
                          100 * static_cast<double>(total.prefix_hit_tokens) /
                              static_cast<double>(total.prefix_query_tokens),
                          total.prefix_query_tokens);
  }
  return text;
}

}  // namespace quire
