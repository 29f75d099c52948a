// A small SVG writer: panels with axes, ticks, labels and lines that read on light and dark
// backgrounds. Pure strings; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire {

struct SvgBox {
  double x = 0, y = 0, width = 0, height = 0;  // of the plot area, in pixels
};

struct SvgAxis {
  double low = 0, high = 1;  // low < high; of a logarithmic one low > 0
  bool logarithmic = false;
  std::string label;
};

struct SvgSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

enum class SvgFont : uint8_t { kHead, kTitle, kSmall };

// Opening of a document with what panels need, its end, and a line of text in it.
std::string SvgBegin(double width, double height);
std::string SvgEnd();
std::string SvgText(double x, double y, SvgFont font, std::string_view text);

enum class SvgLegend : uint8_t { kAbove, kInside };  // in the title's line; at the lower right

// One panel: frame, grid, ticks, axis labels, a line per series in the colour of its place, and a
// legend if there is more than one. Points outside the axes are cut to them.
struct SvgPanel {
  SvgBox box;
  std::string title;
  SvgLegend legend = SvgLegend::kAbove;
  SvgAxis x, y;
  std::vector<SvgSeries> series;  // at most 6 colours

  std::string Render() const;

 private:
  std::string Legend() const;
};

// Round values inside [low, high] to put ticks at: powers of ten for a logarithmic axis, else at
// most `most` multiples of 1, 2 or 5 times a power of ten.
std::vector<double> AxisTicks(const SvgAxis& axis, int most);

}  // namespace quire
