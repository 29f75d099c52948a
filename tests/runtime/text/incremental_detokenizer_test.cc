#include "runtime/text/incremental_detokenizer.h"

#include <random>

#include "gtest/gtest.h"
#include "runtime/text/hf_tokenizer.h"
#include "runtime/text/utf8.h"
#include "tests/runtime/text/text_fixtures.h"

namespace quire {
namespace {

class IncrementalDetokenizerTest : public testing::Test {
 protected:
  static TokenId Byte(uint8_t b) { return TokenId{b}; }  // the small vocabulary begins with the 256 bytes

  std::unique_ptr<Tokenizer> tokenizer_ = *MakeTokenizer(SmallVocab());
  IncrementalDetokenizer detokenizer_{tokenizer_.get()};
};

TEST_F(IncrementalDetokenizerTest, TellsTheBytesOfEachToken) {
  EXPECT_EQ(detokenizer_.Append(IdOf(*tokenizer_, ToAlphabet(" the"))), 4);
  EXPECT_EQ(detokenizer_.Append(IdOf(*tokenizer_, "<|im_end|>")), 0);
  EXPECT_EQ(detokenizer_.Append(Byte(0xC3)), 1);
  EXPECT_EQ(detokenizer_.pending(), " the\xC3");
}

TEST_F(IncrementalDetokenizerTest, HoldsBytesUntilTheirCodePointIsWhole) {
  for (const uint8_t b : {0xF0, 0x9F, 0x99}) {
    detokenizer_.Append(Byte(b));
    EXPECT_EQ(detokenizer_.Take().text, "");
  }
  detokenizer_.Append(Byte(0x82));
  const auto taken = detokenizer_.Take();
  EXPECT_EQ(taken.text, "\U0001F642");
  EXPECT_EQ(taken.raw_bytes, 4u);
  EXPECT_EQ(detokenizer_.pending(), "");
}

TEST_F(IncrementalDetokenizerTest, ReplacesWhatCanNeverComplete) {
  detokenizer_.Append(Byte(0xF0));
  detokenizer_.Append(Byte(0x9F));
  detokenizer_.Append(Byte('x'));
  const auto taken = detokenizer_.Take();
  EXPECT_EQ(taken.text, "\uFFFDx");
  EXPECT_EQ(taken.raw_bytes, 3u);
}

TEST_F(IncrementalDetokenizerTest, FlushReplacesWhatIsUnfinishedAtTheEnd) {
  detokenizer_.Append(Byte('a'));
  detokenizer_.Append(Byte(0xE4));
  detokenizer_.Append(Byte(0xB8));
  EXPECT_EQ(detokenizer_.Take().text, "a");
  const auto taken = detokenizer_.Flush();
  EXPECT_EQ(taken.text, "\uFFFD");
  EXPECT_EQ(taken.raw_bytes, 2u);
  EXPECT_EQ(detokenizer_.Flush().text, "");
}

TEST_F(IncrementalDetokenizerTest, ALimitNeverCutsACodePoint) {
  detokenizer_.Append(IdOf(*tokenizer_, ToAlphabet("éé")));
  EXPECT_EQ(detokenizer_.Take(0).text, "");
  EXPECT_EQ(detokenizer_.Take(1).text, "");
  EXPECT_EQ(detokenizer_.Take(3).text, "é");
  EXPECT_EQ(detokenizer_.pending(), "é");
  EXPECT_EQ(detokenizer_.Flush(0).text, "");
  EXPECT_EQ(detokenizer_.pending(), "");
}

TEST_F(IncrementalDetokenizerTest, AnyDivisionOfTheBytesGivesTheSameText) {
  std::mt19937 rng(7);
  const uint8_t bytes[] = {'a', ' ', 0x80, 0xC3, 0xA9, 0xE4, 0xB8, 0xAD, 0xF0, 0x9F, 0x99, 0x82, 0xFF};
  for (int round = 0; round < 2'000; ++round) {
    IncrementalDetokenizer detokenizer(tokenizer_.get());
    std::string raw, text;
    size_t raw_bytes = 0;
    for (int i = static_cast<int>(rng() % 200); i > 0; --i) {
      const uint8_t b = bytes[rng() % sizeof bytes];
      raw.push_back(static_cast<char>(b));
      ASSERT_EQ(detokenizer.Append(Byte(b)), 1);
      if (rng() % 3 == 0) {
        const auto taken = rng() % 2 == 0 ? detokenizer.Take() : detokenizer.Take(rng() % 8);
        ASSERT_TRUE(IsValidUtf8(taken.text));
        text += taken.text;
        raw_bytes += taken.raw_bytes;
        ASSERT_EQ(detokenizer.pending(), std::string_view(raw).substr(raw_bytes));
      }
    }
    text += detokenizer.Take().text;
    ASSERT_LE(detokenizer.pending().size(), 3u);
    text += detokenizer.Flush().text;
    std::string wanted;
    AppendUtf8(raw, wanted);
    ASSERT_EQ(text, wanted);
  }
}

}  // namespace
}  // namespace quire
