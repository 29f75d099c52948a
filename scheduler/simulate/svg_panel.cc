#include "scheduler/simulate/svg_panel.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/absl_view.h"

namespace quire {
namespace {

// Looks are attributes, which every viewer knows; the classes are for dark backgrounds alone, which
// only style sheets can tell.
constexpr std::string_view kDarkStyle = R"(<style>
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9da7b3; }
  .paper { fill: #0d1117; }
  .frame { stroke: #6e7681; }
  .grid { stroke: #262c36; }
  .s0 { stroke: #4aa3df; }
}
</style>
)";

constexpr std::string_view kFrame = R"(class="frame" fill="none" stroke="#8c959f")";
constexpr std::string_view kGrid = R"(class="grid" stroke="#d8dee4")";
constexpr std::string_view kSmall = R"(class="small" font-size="11" fill="#57606a")";
constexpr std::string_view kTitle =
    R"(class="title" font-size="13" font-weight="600" fill="#24292f")";
constexpr std::string_view kHead =
    R"(class="head" font-size="15" font-weight="600" fill="#24292f")";

// Colours of Okabe and Ito, which most colour-blind people tell apart; they stand out on both
// backgrounds.
constexpr std::array<std::string_view, 6> kColours = {"#0072b2", "#d55e00", "#009e73",
                                                      "#cc79a7", "#e69f00", "#56b4e9"};

std::string LineLook(size_t series) {
  const size_t i = series % kColours.size();
  return absl::StrFormat(
      R"(class="s%d" fill="none" stroke="%s" stroke-width="1.8" stroke-linejoin="round")", i,
      View(kColours[i]));
}

std::string_view Look(SvgFont font) {
  return font == SvgFont::kHead ? kHead : font == SvgFont::kTitle ? kTitle : kSmall;
}

std::string Escape(std::string_view text) {
  return absl::StrReplaceAll(View(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// Part of the axis at which `value` lies, cut to 0..1.
double Place(const SvgAxis& axis, double value) {
  const double part = axis.logarithmic ? std::log(std::max(value, axis.low) / axis.low) /
                                             std::log(axis.high / axis.low)
                                       : (value - axis.low) / (axis.high - axis.low);
  return std::clamp(part, 0.0, 1.0);
}

std::string Line(double x1, double y1, double x2, double y2) {
  return absl::StrFormat("<line %s x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                         View(kGrid), x1, y1, x2, y2);
}

std::string Anchored(double x, double y, std::string_view anchor, std::string_view text) {
  return absl::StrFormat("<text %s x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n",
                         View(kSmall), x, y, View(anchor), Escape(text));
}

}  // namespace

std::string SvgBegin(double width, double height) {
  return absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"sans-serif\">\n%s"
      "<rect class=\"paper\" fill=\"#ffffff\" width=\"%.0f\" height=\"%.0f\"/>\n",
      width, height, width, height, View(kDarkStyle), width, height);
}

std::string SvgEnd() { return "</svg>\n"; }

std::string SvgText(double x, double y, SvgFont font, std::string_view text) {
  return absl::StrFormat("<text %s x=\"%.1f\" y=\"%.1f\">%s</text>\n", View(Look(font)), x, y,
                         Escape(text));
}

std::vector<double> AxisTicks(const SvgAxis& axis, int most) {
  std::vector<double> ticks;
  if (axis.logarithmic) {
    const int last = static_cast<int>(std::floor(std::log10(axis.high) + 1e-9));
    for (int e = static_cast<int>(std::ceil(std::log10(axis.low) - 1e-9)); e <= last; ++e) {
      ticks.push_back(std::pow(10.0, e));
    }
    return ticks;
  }
  const double rough = (axis.high - axis.low) / most;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  for (double i = std::ceil(axis.low / step); i * step <= axis.high + step * 1e-9; ++i) {
    ticks.push_back(i * step);
  }
  return ticks;
}

std::string SvgPanel::Render() const {
  const double bottom = box.y + box.height, right = box.x + box.width;
  const auto to_x = [&](double v) { return box.x + Place(x, v) * box.width; };
  const auto to_y = [&](double v) { return bottom - Place(y, v) * box.height; };
  std::string svg = SvgText(box.x, box.y - 8, SvgFont::kTitle, title);
  for (const double tick : AxisTicks(x, 8)) {
    absl::StrAppend(&svg, Line(to_x(tick), box.y, to_x(tick), bottom),
                    Anchored(to_x(tick), bottom + 15, "middle", absl::StrFormat("%g", tick)));
  }
  for (const double tick : AxisTicks(y, 5)) {
    absl::StrAppend(&svg, Line(box.x, to_y(tick), right, to_y(tick)),
                    Anchored(box.x - 6, to_y(tick) + 4, "end", absl::StrFormat("%g", tick)));
  }
  absl::StrAppendFormat(&svg, "<rect %s x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                        View(kFrame), box.x, box.y, box.width, box.height);
  absl::StrAppend(&svg, Anchored((box.x + right) / 2, bottom + 31, "middle", x.label));
  absl::StrAppendFormat(&svg,
                        "<text %s text-anchor=\"middle\" "
                        "transform=\"translate(%.1f %.1f) rotate(-90)\">%s</text>\n",
                        View(kSmall), box.x - 40, (box.y + bottom) / 2, Escape(y.label));
  for (size_t i = 0; i < series.size(); ++i) {
    absl::StrAppendFormat(&svg, "<polyline %s points=\"", LineLook(i));
    for (const auto& [px, py] : series[i].points) {
      absl::StrAppendFormat(&svg, "%.1f,%.1f ", to_x(px), to_y(py));
    }
    svg += "\"/>\n";
  }
  return svg + Legend();
}

std::string SvgPanel::Legend() const {
  std::string svg;
  if (series.size() < 2) return svg;
  const bool inside = legend == SvgLegend::kInside;
  double right = box.x + box.width - (inside ? 8 : 0);
  double baseline = inside ? box.y + box.height - 10 : box.y - 8;
  for (size_t i = series.size(); i-- > 0;) {
    svg += Anchored(right, baseline, "end", series[i].name);
    const double end = right - 6.6 * static_cast<double>(series[i].name.size()) - 6;
    absl::StrAppendFormat(&svg, "<line %s x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                          LineLook(i), end - 16, baseline - 4, end, baseline - 4);
    (inside ? baseline : right) = inside ? baseline - 16 : end - 32;
  }
  return svg;
}

}  // namespace quire
