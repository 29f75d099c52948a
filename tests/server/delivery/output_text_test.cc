#include "server/delivery/output_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/text/utf8.h"
#include "tests/testing/mix.h"

namespace quire {
namespace {

struct Result {
  std::string text;
  std::vector<int32_t> ids, visible;  // visible: bytes of each listed token in the text
  int32_t listed = 0, stop_tokens = 0, deltas = 0;
  std::optional<int32_t> matched;

  friend bool operator==(const Result& a, const Result& b) {
    return a.text == b.text && a.ids == b.ids && a.visible == b.visible && a.listed == b.listed &&
           a.stop_tokens == b.stop_tokens && a.matched == b.matched;
  }
};

struct Case {
  std::vector<std::string> pieces;  // tokens in order; the id of a token is its place
  std::vector<std::string> stops;
  int32_t min_tokens = 0;
  bool keep_stop = false;
};

// Checks a delta against the span rule and adds it up.
void Absorb(OutDelta delta, Result& result) {
  std::string raw, text;
  for (const OutToken& token : delta.tokens) {
    const auto visible = token.visible_bytes.value_or(static_cast<int32_t>(token.piece.size()));
    raw += token.piece.substr(0, static_cast<size_t>(visible));
    result.ids.push_back(static_cast<int32_t>(token.id));
    result.visible.push_back(visible);
  }
  AppendUtf8(raw, text);
  EXPECT_EQ(delta.text, text) << "a delta's text is the visible bytes of its tokens";
  EXPECT_TRUE(IsValidUtf8(delta.text));
  result.text += delta.text;
  ++result.deltas;
}

// least: tokens per message; 0 = all at the end.
Result Play(const Case& c, int32_t least, int64_t soft_bytes = 1 << 20) {
  OutputText text(c.stops);
  Result result;
  int32_t drawn = 0;
  for (const std::string& piece : c.pieces) {
    ++drawn;
    const std::optional<StopMatch> match = text.Add({.id = TokenId{drawn - 1}, .piece = piece},
                                                    piece, drawn >= c.min_tokens, c.keep_stop);
    if (match.has_value()) {
      result.matched = match->index;
      break;
    }
    while (least > 0 && text.ready() >= least) Absorb(text.Take(soft_bytes), result);
  }
  text.Finish();
  while (text.ready() > 0) Absorb(text.Take(soft_bytes), result);
  result.listed = text.listed_tokens();
  result.stop_tokens = text.stop_tokens();
  EXPECT_EQ(result.listed, static_cast<int32_t>(result.ids.size()));
  EXPECT_EQ(result.listed + result.stop_tokens, drawn);
  return result;
}

std::vector<std::string> Split(TestRandom& random, const std::string& bytes) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < bytes.size();) {
    const auto size = static_cast<size_t>(random.Chance(10) ? 0 : random.Between(1, 5));
    pieces.push_back(bytes.substr(at, size));
    at += pieces.back().size();
  }
  return pieces;
}

std::string RandomBytes(TestRandom& random, int32_t most, bool valid) {
  static const std::vector<std::string> kUnits = {
      "a",    "b",        "ab",   "\n",  "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
      "\xC3", "\xF0\x9F", "\x80", "\xFF"};
  std::string bytes;
  for (int32_t n = random.Between(1, most); n > 0; --n) {
    bytes += kUnits[static_cast<size_t>(
        random.Between(0, valid ? 6 : static_cast<int32_t>(kUnits.size()) - 1))];
  }
  return bytes;
}

TEST(OutputText, EveryWayToCutTheStreamGivesTheUnaryResult) {
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    Case c;
    const std::string bytes = RandomBytes(random, 30, false);
    c.pieces = Split(random, bytes);
    for (int32_t n = random.Between(0, 3); n > 0; --n)
      c.stops.push_back(RandomBytes(random, 3, true));
    c.min_tokens = random.Chance(30) ? random.Between(1, 8) : 0;
    c.keep_stop = random.Chance(30);
    const Result unary = Play(c, 0);
    for (const int32_t least : {1, 2, 3, 7, 256}) EXPECT_EQ(Play(c, least), unary) << least;
    EXPECT_EQ(Play(c, 0, 4), unary) << "small slices";
  }
}

TEST(OutputText, AStopCutAtEveryByteAndEveryTokenSplitGivesTheSameText) {
  const std::string stop = "<\xE2\x82\xAC>stop";
  const std::string before = "caf\xC3\xA9 ";
  const std::string bytes = before + stop + " tail";
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); ++second) {
      Case c{.pieces = {bytes.substr(0, first), bytes.substr(first, second - first),
                        bytes.substr(second)},
             .stops = {stop}};
      for (const int32_t least : {0, 1}) {
        const Result result = Play(c, least);
        ASSERT_EQ(result.text, before) << first << " " << second;
        EXPECT_EQ(result.matched, 0);
      }
      c.keep_stop = true;
      ASSERT_EQ(Play(c, 1).text, before + stop) << first << " " << second;
    }
  }
}

TEST(OutputText, ATokenAcrossTheCutIsListedWithItsVisibleBytes) {
  const Result result = Play({.pieces = {"ab", "cdEN", "D", "x"}, .stops = {"END"}}, 1);
  EXPECT_EQ(result.text, "abcd");
  EXPECT_THAT(result.ids, testing::ElementsAre(0, 1));
  EXPECT_THAT(result.visible, testing::ElementsAre(2, 2));
  EXPECT_EQ(result.stop_tokens, 1);  // "D" lies wholly behind the cut; "x" is never added
}

TEST(OutputText, StopStringsCountFromMinTokensOn) {
  const Case c{.pieces = {"x", "END", "y", "END", "z"}, .stops = {"END"}, .min_tokens = 3};
  EXPECT_EQ(Play(c, 1).text, "xENDy");
}

TEST(OutputText, AMatchMayBeginBeforeMinTokens) {
  const Case c{.pieces = {"aE", "ND", "z"}, .stops = {"END"}, .min_tokens = 2};
  EXPECT_EQ(Play(c, 1).text, "a");
}

TEST(OutputText, HeldBytesComeOutWhenTheyCannotMatchAnyMore) {
  OutputText text({"</end>"});
  EXPECT_FALSE(text.Add({.id = TokenId{0}, .piece = "a</e"}, "a</e", true, false).has_value());
  EXPECT_EQ(text.ready(), 0) << "the token waits with its held bytes";
  EXPECT_FALSE(text.Add({.id = TokenId{1}, .piece = "x"}, "x", true, false).has_value());
  EXPECT_EQ(text.ready(), 2);
  EXPECT_EQ(text.Take(1 << 20).text, "a</ex");
}

TEST(OutputText, ACodePointIsNeverSplitAcrossDeltas) {
  const Result result = Play({.pieces = {"\xF0\x9F", "\x98", "\x80", "!"}, .stops = {}}, 1);
  EXPECT_EQ(result.text, "\xF0\x9F\x98\x80!");
  EXPECT_EQ(result.deltas, 2);
}

TEST(OutputText, WhatCanNeverCompleteIsReplacedOncePerSubpart) {
  EXPECT_EQ(Play({.pieces = {"\xE2\x82", "A", "\xF0\x9F\x98"}, .stops = {}}, 1).text,
            "\xEF\xBF\xBD"
            "A\xEF\xBF\xBD");
}

TEST(OutputText, WithoutStopStringsEachWholeTokenIsReadyAtOnce) {
  EXPECT_EQ(Play({.pieces = {"one", " two", " three"}, .stops = {}}, 1).deltas, 3);
  EXPECT_EQ(Play({.pieces = {"one", " two", " three"}, .stops = {}}, 2).deltas, 2);
  EXPECT_EQ(Play({.pieces = {"one", " two", " three"}, .stops = {}}, 0).deltas, 1);
}

}  // namespace
}  // namespace quire
