#include "server/delivery/stop_strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/mix.h"

namespace quire {
namespace {

// The definition: at each end, the longest string that the stream ends with.
std::optional<StopMatch> Reference(const std::string& text, const std::vector<std::string>& stops,
                                   size_t armed_from) {
  for (size_t end = 1; end <= text.size(); ++end) {
    if (end <= armed_from) continue;
    std::optional<StopMatch> best;
    for (size_t i = 0; i < stops.size(); ++i) {
      if (!std::string_view(text).substr(0, end).ends_with(stops[i])) continue;
      const auto size = static_cast<int64_t>(stops[i].size());
      if (best.has_value() && best->end - best->begin >= size) continue;
      best = StopMatch{static_cast<int64_t>(end) - size, static_cast<int64_t>(end),
                       static_cast<int32_t>(i)};
    }
    if (best.has_value()) return best;
  }
  return std::nullopt;
}

int64_t ReferenceHeld(std::string_view text, const std::vector<std::string>& stops) {
  for (size_t held = text.size(); held > 0; --held) {
    for (const std::string& stop : stops) {
      if (held < stop.size() && stop.starts_with(text.substr(text.size() - held)))
        return static_cast<int64_t>(held);
    }
  }
  return 0;
}

std::string RandomText(TestRandom& random, int32_t least, int32_t most) {
  std::string text;
  for (int32_t n = random.Between(least, most); n > 0; --n)
    text += static_cast<char>('a' + random.Between(0, 2));
  return text;
}

void ExpectSame(const std::optional<StopMatch>& got, const std::optional<StopMatch>& want) {
  ASSERT_EQ(got.has_value(), want.has_value());
  if (!got.has_value()) return;
  EXPECT_EQ(got->begin, want->begin);
  EXPECT_EQ(got->end, want->end);
  EXPECT_EQ(got->index, want->index);
}

TEST(StopMatcher, FindsWhatTheDefinitionSays) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    std::vector<std::string> stops;
    for (int32_t n = random.Between(1, 4); n > 0; --n) {
      std::string stop = RandomText(random, 1, 5);
      if (std::ranges::find(stops, stop) == stops.end()) stops.push_back(std::move(stop));
    }
    const std::string text = RandomText(random, 0, 40);
    const auto armed_from = static_cast<size_t>(random.Chance(50) ? 0 : random.Between(0, 20));
    StopMatcher matcher(stops);
    std::optional<StopMatch> got;
    for (size_t at = 0; at < text.size() && !got.has_value(); ++at) {
      got = matcher.Append(std::string_view(text).substr(at, 1), at >= armed_from);
      if (!got.has_value()) {
        EXPECT_EQ(matcher.held(), ReferenceHeld(std::string_view(text).substr(0, at + 1), stops))
            << text;
      }
    }
    ExpectSame(got, Reference(text, stops, armed_from));
  }
}

TEST(StopMatcher, GivesTheSameMatchHoweverTheBytesArrive) {
  const std::vector<std::string> stops = {"</s>", "s>", "\n\nUser:"};
  const std::string text = "abc<</s>s>";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    StopMatcher matcher(stops);
    std::optional<StopMatch> match = matcher.Append(std::string_view(text).substr(0, cut), true);
    if (!match.has_value()) match = matcher.Append(std::string_view(text).substr(cut), true);
    ASSERT_TRUE(match.has_value()) << cut;
    EXPECT_EQ(match->begin, 4);
    EXPECT_EQ(match->end, 8);
    EXPECT_EQ(match->index, 0);  // the longest of the two that complete at once
  }
}

TEST(StopMatcher, TheMatchThatCompletesFirstWinsOverALongerOneThatBeganEarlier) {
  StopMatcher matcher({"abcdef", "cd"});
  const std::optional<StopMatch> match = matcher.Append("abcdef", true);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->index, 1);
  EXPECT_EQ(match->begin, 2);
}

TEST(StopMatcher, WithoutStringsNothingIsHeld) {
  StopMatcher matcher({});
  EXPECT_FALSE(matcher.Append("anything", true).has_value());
  EXPECT_EQ(matcher.held(), 0);
  EXPECT_TRUE(matcher.empty());
}

}  // namespace
}  // namespace quire
