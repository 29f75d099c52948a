#include "runtime/text/utf8.h"

#include <random>

#include "gtest/gtest.h"

namespace quire {
namespace {

std::string Text(std::string_view bytes) {
  std::string out;
  AppendUtf8(bytes, out);
  return out;
}

TEST(Utf8, CutsBetweenCodePoints) {
  const std::string_view text = "a\xC3\xA9\xF0\x9F\x98\x80z";
  const size_t cuts[] = {0, 1, 1, 3, 3, 3, 3, 7, 8, 8};
  for (size_t limit = 0; limit < std::size(cuts); ++limit) {
    EXPECT_EQ(CutBefore(text, limit), cuts[limit]) << limit;
  }
}

TEST(Utf8, AcceptsEveryEdgeOfTheRanges) {
  for (const char* valid :
       {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsValidUtf8(valid)) << valid;
    EXPECT_EQ(Text(valid), valid);
  }
}

TEST(Utf8, RefusesOverlongSurrogatesAndBeyond) {
  for (const char* bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xE2\x82", "\xE2\x28\xA1"}) {
    EXPECT_FALSE(IsValidUtf8(bad)) << bad;
  }
}

TEST(Utf8, ReplacesEachMaximalSubpartOnce) {
  // The Unicode standard's own example (section 3.9, table 3-8).
  EXPECT_EQ(Text("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\uFFFD\uFFFD\uFFFD"
            "b\uFFFD"
            "c\uFFFD\uFFFD"
            "d");
  EXPECT_EQ(Text("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD"
            "A");
  EXPECT_EQ(Text("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Text("\xF0\x9F\x99"), "\uFFFD");
}

TEST(Utf8, CompletePrefixHoldsOnlyWhatMayComplete) {
  EXPECT_EQ(CompletePrefix(""), 0u);
  EXPECT_EQ(CompletePrefix("ab"), 2u);
  EXPECT_EQ(CompletePrefix("a\xF0\x9F\x99\x82"), 5u);
  EXPECT_EQ(CompletePrefix("a\xF0"), 1u);
  EXPECT_EQ(CompletePrefix("a\xF0\x9F"), 1u);
  EXPECT_EQ(CompletePrefix("a\xF0\x9F\x99"), 1u);
  EXPECT_EQ(CompletePrefix("a\xE0\x80"), 3u);  // 80 cannot follow E0
  EXPECT_EQ(CompletePrefix("a\xED\xA0"), 3u);  // a surrogate
  EXPECT_EQ(CompletePrefix("a\x80\x80\x80\x80"), 5u);
  EXPECT_EQ(CompletePrefix("\xC3"), 0u);
  EXPECT_EQ(CompletePrefix("\xFF"), 1u);
}

TEST(Utf8, AnyCutAtTheCompletePrefixGivesTheSameText) {
  std::mt19937 rng(1);
  const char bytes[] = {'a',    '\x80', '\xBF', '\xC2', '\xE0', '\xA0',
                        '\xED', '\x9F', '\xF0', '\x90', '\xF4', '\x8F'};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (int i = static_cast<int>(rng() % 12); i > 0; --i)
      text.push_back(bytes[rng() % sizeof bytes]);
    std::string held, out;
    for (const char byte : text) {
      held.push_back(byte);
      const size_t complete = CompletePrefix(held);
      ASSERT_LE(held.size() - complete, 3u);
      AppendUtf8(std::string_view(held).substr(0, complete), out);
      held.erase(0, complete);
    }
    AppendUtf8(held, out);
    ASSERT_EQ(out, Text(text));
    ASSERT_TRUE(IsValidUtf8(out));
    ASSERT_EQ(IsValidUtf8(text), out == text);
  }
}

}  // namespace
}  // namespace quire
