#include "runtime/text/control_splitter.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

class ControlSplitterTest : public testing::Test {
 protected:
  // Matches as "begin-end=id ...".
  std::string Matches(std::string_view text) const {
    std::string out;
    for (auto match = splitter_.Next(text, 0); match.end != 0;
         match = splitter_.Next(text, match.end)) {
      out += std::to_string(match.begin) + "-" + std::to_string(match.end) + "=" +
             std::to_string(static_cast<int>(match.id)) + " ";
    }
    return out;
  }

  const ControlSplitter splitter_{{{"<|a|>", TokenId{1}},
                                   {"<|a|>b", TokenId{2}},
                                   {"", TokenId{3}},
                                   {"<|a|>", TokenId{4}},
                                   {"<s>", TokenId{5}},
                                   {"|>", TokenId{6}}}};
};

TEST_F(ControlSplitterTest, FindsTheLeftmostAndOfThoseTheLongest) {
  EXPECT_EQ(Matches(""), "");
  EXPECT_EQ(Matches("<|a"), "");
  EXPECT_EQ(Matches("x<|a|>y"), "1-6=1 ");
  EXPECT_EQ(Matches("<|a|>b<|a|>c"), "0-6=2 6-11=1 ");
  EXPECT_EQ(Matches("<<s>"), "1-4=5 ");
  EXPECT_EQ(Matches("<|<|a|>|>"), "2-7=1 7-9=6 ");
}

TEST_F(ControlSplitterTest, KnowsWhereASpellingBeginsThoughTheTextEndsInIt) {
  EXPECT_FALSE(splitter_.BeginsAt("", 0));
  EXPECT_FALSE(splitter_.BeginsAt("x", 0));
  EXPECT_TRUE(splitter_.BeginsAt("x<", 1));
  EXPECT_FALSE(splitter_.BeginsAt("x<", 0));
  EXPECT_TRUE(splitter_.BeginsAt("<|a|", 0));
  EXPECT_TRUE(splitter_.BeginsAt("<|a|>x", 0));
  EXPECT_FALSE(splitter_.BeginsAt("<|b", 0));
  EXPECT_TRUE(splitter_.BeginsAt("<|a|", 3));  // |>
}

TEST_F(ControlSplitterTest, KnowsTextThatBeginsInsideASpelling) {
  EXPECT_TRUE(splitter_.BeginsInside(">x"));
  EXPECT_TRUE(splitter_.BeginsInside("a|>"));
  EXPECT_TRUE(splitter_.BeginsInside("b"));
  EXPECT_FALSE(splitter_.BeginsInside("<|a|>"));
  EXPECT_FALSE(splitter_.BeginsInside(""));
  EXPECT_FALSE(splitter_.BeginsInside("x>"));
}

TEST(ControlSplitter, WithoutSpellingsFindsNothing) {
  const ControlSplitter none({});
  EXPECT_EQ(none.Next("<|a|>", 0).end, 0u);
  EXPECT_FALSE(none.BeginsAt("<", 0));
  EXPECT_FALSE(none.BeginsInside(">"));
}

TEST(ControlSplitter, IsLinearInHostileText) {
  std::vector<ControlSplitter::Entry> entries;
  for (int i = 0; i < 1000; ++i)
    entries.push_back({"<|reserved_" + std::to_string(i) + "|>", TokenId{i}});
  const ControlSplitter splitter(std::move(entries));
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "<|reserved_";
  EXPECT_EQ(splitter.Next(text, 0).end, 0u);
  text += "7|>";
  EXPECT_EQ(splitter.Next(text, 0).id, TokenId{7});
}

}  // namespace
}  // namespace quire
