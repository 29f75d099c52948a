#include "scheduler/simulate/svg_panel.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AxisTicks, AreRoundNumbers) {
  EXPECT_THAT(AxisTicks({.low = 0, .high = 100, .label = ""}, 5),
              ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(AxisTicks({.low = 0, .high = 7, .label = ""}, 5), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(AxisTicks({.low = 0, .high = 0.5, .label = ""}, 5).size(), 6u);
  EXPECT_THAT(AxisTicks({.low = 0.01, .high = 10, .logarithmic = true, .label = ""}, 5).size(), 4u);
}

SvgPanel Panel() {
  return {.box = {.x = 10, .y = 20, .width = 100, .height = 50},
          .title = "a <b> & \"c\"",
          .x = {.low = 0, .high = 10, .label = "seconds"},
          .y = {.low = 0, .high = 1, .label = "part"},
          .series = {{.name = "one", .points = {{0, 0}, {5, 0.5}, {20, 2}}}}};
}

TEST(SvgPanel, PutsPointsInsideItsBox) {
  EXPECT_THAT(Panel().Render(), HasSubstr("points=\"10.0,70.0 60.0,45.0 110.0,20.0 \""))
      << "what is beyond the axes is cut to them";
}

TEST(SvgPanel, EscapesText) {
  const std::string svg = Panel().Render();
  EXPECT_THAT(svg, HasSubstr("a &lt;b&gt; &amp; &quot;c&quot;"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
}

TEST(SvgPanel, NamesItsLinesIfThereAreSeveral) {
  SvgPanel panel = Panel();
  EXPECT_THAT(panel.Render(), Not(HasSubstr(">one<")));
  panel.series.push_back({.name = "two", .points = {{1, 1}}});
  EXPECT_THAT(panel.Render(), HasSubstr(">one<"));
  EXPECT_THAT(panel.Render(), HasSubstr(">two<"));
}

TEST(SvgPanel, NeedsNoStyleSheet) {
  SvgPanel panel = Panel();
  panel.series.push_back({.name = "two", .points = {{1, 1}}});
  const std::string svg =
      SvgBegin(10, 10) + SvgText(1, 2, SvgFont::kHead, "head") + panel.Render() + SvgEnd();
  EXPECT_THAT(svg, HasSubstr("font-family="));
  int elements = 0;
  for (const std::string_view kind : {"<text ", "<rect ", "<line ", "<polyline "}) {
    for (size_t at = svg.find(kind); at != std::string::npos; at = svg.find(kind, at + 1)) {
      const std::string element = svg.substr(at, svg.find('>', at) - at);
      ++elements;
      if (kind != "<line ") {
        EXPECT_THAT(element, HasSubstr(" fill=\"")) << element;
      }
      if (kind == "<line " || kind == "<polyline ") {
        EXPECT_THAT(element, HasSubstr(" stroke=\"#")) << element;
      }
      if (kind == "<text ") {
        EXPECT_THAT(element, HasSubstr(" font-size=\"")) << element;
      }
    }
  }
  EXPECT_GT(elements, 20);
}

TEST(SvgBegin, HasStylesForDarkBackgrounds) {
  EXPECT_THAT(SvgBegin(10, 10), HasSubstr("prefers-color-scheme: dark"));
}

}  // namespace
}  // namespace quire
