#include "scheduler/simulate/result_plot.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "scheduler/simulate/svg_panel.h"

namespace quire {
namespace {

constexpr double kWidth = 1000, kHeight = 720;
constexpr double kLeft = 62, kRight = 24;
constexpr size_t kMaxTenants = 5;  // more lines than these cannot be told apart

// The share of requests (percent) over seconds, on a logarithmic axis.
SvgPanel Distribution(const SimulationResult& result, LatencyHistogram GroupTotals::* member,
                      const char* title, SvgBox box) {
  SvgPanel panel{.box = box,
                 .title = title,
                 .legend = SvgLegend::kInside,
                 .x = {.low = 1e-3, .high = 1, .logarithmic = true, .label = "seconds"},
                 .y = {.low = 0, .high = 100, .label = "% at most"},
                 .series = {}};
  const size_t tenants = result.groups.size() - 1;
  const size_t shown = tenants >= 2 && tenants <= kMaxTenants ? result.groups.size() : 1;
  double low = HUGE_VAL, high = 0;
  for (size_t i = 0; i < shown; ++i) {
    const LatencyHistogram& latencies = result.groups[i].*member;
    SvgSeries& series = panel.series.emplace_back(result.groups[i].name);
    if (latencies.count() == 0) continue;
    for (int q = 0; q <= 200; ++q) {
      series.points.emplace_back(latencies.Quantile(q / 200.0), q / 2.0);
    }
    low = std::min(low, series.points.front().first);
    high = std::max(high, series.points.back().first);
  }
  if (high > 0) {
    panel.x.low = std::pow(10, std::floor(std::log10(low)));
    panel.x.high = std::max(panel.x.low * 10, std::pow(10, std::ceil(std::log10(high))));
  }
  return panel;
}

SvgPanel OverTime(const SimulationResult& result, const char* title, const char* unit, SvgBox box) {
  return {.box = box,
          .title = title,
          .x = {.low = 0, .high = std::max(result.seconds, 1e-3), .label = "seconds"},
          .y = {.low = 0, .high = 1, .label = unit},
          .series = {}};
}

// A step line through the bins.
template <typename F>
SvgSeries Bins(const SimulationResult& result, const char* name, F&& value) {
  SvgSeries series{.name = name, .points = {}};
  const double width = result.timeline.bin_seconds();
  double at = 0;
  for (const LoadSample& bin : result.timeline.Averages()) {
    const double end = std::min(at + width, result.seconds);
    // The last bin is averaged over its whole width, also where the run had ended.
    const double v = end > at ? value(bin) * width / (end - at) : 0;
    series.points.emplace_back(at, v);
    series.points.emplace_back(end, v);
    at = end;
  }
  return series;
}

}  // namespace

std::string ResultPlot(const SimulationResult& result, const std::string& title,
                       const std::string& subtitle) {
  std::string svg = SvgBegin(kWidth, kHeight);
  svg += SvgText(kLeft, 28, SvgFont::kHead, title);
  svg += SvgText(kLeft, 46, SvgFont::kSmall, subtitle);
  const std::pair<LatencyHistogram GroupTotals::*, const char*> latencies[] = {
      {&GroupTotals::ttft, "Time to first token"},
      {&GroupTotals::itl, "Between tokens"},
      {&GroupTotals::e2e, "End to end"}};
  constexpr double kGap = 70, kTop = 100;
  constexpr double kThird = (kWidth - kLeft - kRight - 2 * kGap) / 3;
  double x = kLeft;
  for (const auto& [member, name] : latencies) {
    svg += Distribution(result, member, name, {x, kTop, kThird, 170}).Render();
    x += kThird + kGap;
  }
  const double wide = kWidth - kLeft - kRight;
  SvgPanel sequences = OverTime(result, "Sequences", "all replicas", {kLeft, 350, wide, 120});
  sequences.series = {Bins(result, "running", [](const LoadSample& s) { return s.running; }),
                      Bins(result, "waiting", [](const LoadSample& s) { return s.waiting; })};
  double most = 1;
  for (const SvgSeries& s : sequences.series) {
    for (const auto& point : s.points) most = std::max(most, point.second);
  }
  sequences.y.high = most * 1.05;
  svg += sequences.Render();

  const double blocks = std::max(1, result.Scheduler().blocks_total);
  const auto replicas = static_cast<double>(result.replicas.size());
  SvgPanel use = OverTime(result, "Use", "%", {kLeft, 550, wide, 110});
  use.y.high = 100;
  use.series = {
      Bins(result, "KV blocks", [&](const LoadSample& s) { return 100 * s.blocks_used / blocks; }),
      Bins(result, "in a step", [&](const LoadSample& s) { return 100 * s.busy / replicas; })};
  svg += use.Render();
  return svg + SvgEnd();
}

}  // namespace quire
