#include "runtime/text/hf_tokenizer.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_info.h"
#include "tests/runtime/text/text_fixtures.h"

namespace quire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr EncodeOptions kPlain{.add_special_tokens = false, .parse_special_tokens = false};
constexpr EncodeOptions kParse{.add_special_tokens = false, .parse_special_tokens = true};

std::unique_ptr<Tokenizer> Make(const VocabData& vocab) {
  auto tokenizer = MakeTokenizer(vocab);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// "spelling@begin-end" of each token.
std::vector<std::string> Shown(const Tokenizer& tokenizer, const std::vector<TokenSpan>& tokens) {
  std::vector<std::string> out;
  for (const TokenSpan& span : tokens) {
    out.push_back(std::string(tokenizer.Spelling(span.id)) + "@" + std::to_string(span.begin_byte) +
                  "-" + std::to_string(span.end_byte) + (span.special ? "!" : ""));
  }
  return out;
}

TEST(HfTokenizer, MergesByRankAndGivesByteOffsets) {
  const auto tokenizer = Make(SmallVocab());
  EXPECT_THAT(Shown(*tokenizer, *tokenizer->Encode("the the", kPlain)),
              ElementsAre("the@0-3", "Ġthe@3-7"));
  EXPECT_THAT(Shown(*tokenizer, *tokenizer->Encode("éé", kPlain)), ElementsAre("Ã©Ã©@0-4"));
  EXPECT_THAT(Shown(*tokenizer, *tokenizer->Encode("è", kPlain)), ElementsAre("Ã@0-1", "¨@1-2"));
  EXPECT_TRUE(tokenizer->Encode("", kPlain)->empty());
}

TEST(HfTokenizer, SmollmSplitsDigitsAndGpt2DoesNot) {
  VocabData vocab = SmallVocab();
  const auto smollm = Make(vocab);
  EXPECT_THAT(Shown(*smollm, *smollm->Encode("a 1", kPlain)),
              ElementsAre("a@0-1", "Ġ@1-2", "1@2-3"));
  vocab.pre_tokenizer = "gpt-2";
  vocab.merges.push_back("Ġ 1");
  vocab.pieces.push_back("Ġ1");
  vocab.kinds.push_back(TokenKind::kNormal);
  const auto gpt2 = Make(vocab);
  EXPECT_THAT(Shown(*gpt2, *gpt2->Encode("a 1", kPlain)), ElementsAre("a@0-1", "Ġ1@1-3"));
}

TEST(HfTokenizer, ReadsSpelledControlTokensOnlyWhenAsked) {
  const auto tokenizer = Make(SmallVocab());
  const std::string text = "ab<|im_end|>ab";
  EXPECT_THAT(Shown(*tokenizer, *tokenizer->Encode(text, kParse)),
              ElementsAre("ab@0-2", "<|im_end|>@2-12!", "ab@12-14"));
  const auto plain = *tokenizer->Encode(text, kPlain);
  EXPECT_EQ(Decode(*tokenizer, plain), text);
  for (const TokenSpan& span : plain) EXPECT_FALSE(span.special);
}

TEST(HfTokenizer, AlwaysReadsUserDefinedTokens) {
  const auto tokenizer = Make(SmallVocab());
  EXPECT_THAT(Shown(*tokenizer, *tokenizer->Encode("ab<tool>", kPlain)),
              ElementsAre("ab@0-2", "<tool>@2-8"));
  EXPECT_EQ(tokenizer->Piece(IdOf(*tokenizer, "<tool>")), "<tool>");
}

TEST(HfTokenizer, AddsBosAndEosAsPrescribedAndNeverTwice) {
  VocabData vocab = SmallVocab();
  vocab.add_bos = true;
  vocab.add_eos = true;
  const auto tokenizer = Make(vocab);
  EXPECT_THAT(Shown(*tokenizer, *tokenizer->Encode("ab", {})),
              ElementsAre("<|bos|>@0-0!", "ab@0-2", "<|im_end|>@2-2!"));
  EXPECT_THAT(Shown(*tokenizer, *tokenizer->Encode("", {})),
              ElementsAre("<|bos|>@0-0!", "<|im_end|>@0-0!"));
  EXPECT_THAT(Shown(*tokenizer, *tokenizer->Encode("<|bos|>ab", {.parse_special_tokens = true})),
              ElementsAre("<|bos|>@0-7!", "ab@7-9", "<|im_end|>@9-9!"));
  EXPECT_THAT(Shown(*tokenizer, *tokenizer->Encode("ab", kPlain)), ElementsAre("ab@0-2"));
}

TEST(HfTokenizer, ControlTokensHaveNoBytes) {
  const auto tokenizer = Make(SmallVocab());
  const TokenId end = IdOf(*tokenizer, "<|im_end|>");
  EXPECT_TRUE(tokenizer->IsControl(end));
  EXPECT_EQ(tokenizer->Piece(end), "");
  EXPECT_EQ(tokenizer->Spelling(end), "<|im_end|>");
  EXPECT_FALSE(tokenizer->IsControl(TokenId{'a'}));
  EXPECT_EQ(tokenizer->Piece(TokenId{0xC3}), "\xC3");
}

TEST(HfTokenizer, EndsAtEosAndKnownEndsOfTurn) {
  const auto tokenizer = Make(SmallVocab());
  EXPECT_THAT(tokenizer->eos_ids(),
              ElementsAre(IdOf(*tokenizer, "<|im_end|>"), IdOf(*tokenizer, "<|end|>")));
  EXPECT_EQ(tokenizer->bos(), IdOf(*tokenizer, "<|bos|>"));
}

TEST(HfTokenizer, RefusesInvalidUtf8) {
  const auto tokenizer = Make(SmallVocab());
  const auto status = tokenizer->Encode("a\xED\xA0\x80", kPlain).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetErrorInfo(status).reason, "FIELD_INVALID");
}

TEST(HfTokenizer, RefusesAnUnknownPreTokenizerListingTheKnown) {
  VocabData vocab = SmallVocab();
  vocab.pre_tokenizer = "llama9";
  const auto status = MakeTokenizer(vocab).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& part :
       {std::string("llama9"), std::string("smollm"), std::string("gpt-2")}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
  EXPECT_THAT(KnownPreTokenizers(), testing::UnorderedElementsAre("smollm", "gpt-2"));
}

TEST(HfTokenizer, RefusesVocabulariesThatDoNotFit) {
  const auto refused = [](auto change) {
    VocabData vocab = SmallVocab();
    change(vocab);
    return MakeTokenizer(vocab).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](VocabData& v) { v.model = "llama"; }));
  EXPECT_TRUE(refused([](VocabData& v) { v.kinds.pop_back(); }));
  EXPECT_TRUE(refused([](VocabData& v) { v.pieces.clear(), v.kinds.clear(); }));
  EXPECT_TRUE(refused([](VocabData& v) { v.bos = TokenId{100'000}; }));
  EXPECT_TRUE(refused([](VocabData& v) { v.eos = TokenId{-2}; }));
  EXPECT_TRUE(refused([](VocabData& v) { v.merges.push_back("q"); }));
  EXPECT_TRUE(refused([](VocabData& v) { v.merges.push_back("q q"); }));  // no piece "qq"
  EXPECT_TRUE(refused([](VocabData& v) { v.merges.push_back("a b c"); }));
  EXPECT_TRUE(refused([](VocabData& v) { v.merges.push_back("\xFF a"); }));
}

TEST(HfTokenizer, OfEqualPiecesTheFirstWinsAndInvalidOnesStayRaw) {
  VocabData vocab = SmallVocab();
  vocab.pieces.push_back("a");
  vocab.pieces.push_back("\xFF\xFE");
  vocab.kinds.resize(vocab.pieces.size(), TokenKind::kNormal);
  const auto tokenizer = Make(vocab);
  EXPECT_EQ(tokenizer->Encode("a", kPlain)->front().id, TokenId{'a'});
  EXPECT_EQ(tokenizer->Piece(TokenId{tokenizer->vocab_size() - 1}), "\xFF\xFE");
  EXPECT_EQ(tokenizer->Piece(TokenId{tokenizer->vocab_size() - 2}), "a");
}

TEST(HfTokenizer, BytesWithoutAPieceAreLostAndOffsetsStayExact) {
  VocabData vocab = SmallVocab();
  vocab.kinds['b'] = TokenKind::kControl;  // now "b" is no piece
  vocab.pieces['b'] = "<|b|>";
  std::erase(vocab.merges, "a b");
  const auto tokenizer = Make(vocab);
  EXPECT_THAT(Shown(*tokenizer, *tokenizer->Encode("bathbeb", kPlain)),
              ElementsAre("a@1-2", "the@2-6"));
  EXPECT_TRUE(tokenizer->Encode("bbb", kPlain)->empty());
}

TEST(HfTokenizer, DecodingUndoesEncoding) {
  QUIRE_MODEL_VOCAB_OR_SKIP(vocab);
  const auto tokenizer = Make(vocab);
  std::mt19937 rng(20251129);
  const char32_t limits[] = {0x7F, 0x7FF, 0xFFFF, 0x3FFFF};
  for (int round = 0; round < 3'000; ++round) {
    std::string text;
    for (int i = static_cast<int>(rng() % 40); i > 0; --i) {
      const char32_t c = 0x20 + rng() % (limits[rng() % 4] - 0x20);
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      if (c < 0x80) {
        text.push_back(static_cast<char>(c));
      } else if (c < 0x800) {
        text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
      } else if (c < 0x10000) {
        text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
                 static_cast<char>(0x80 | (c & 0x3F))};
      } else {
        text += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
                 static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
      }
    }
    const auto tokens = tokenizer->Encode(text, kPlain);
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    ASSERT_EQ(Decode(*tokenizer, *tokens), text);
    ASSERT_LE(tokenizer->AtLeastTokens(text), static_cast<int64_t>(tokens->size()));
    int32_t at = 0;
    for (const TokenSpan& span : *tokens) {
      ASSERT_EQ(span.begin_byte, at);
      at = span.end_byte;
    }
    ASSERT_EQ(at, static_cast<int32_t>(text.size()));
  }
}

TEST(HfTokenizer, TheModelsSpecialTokensAreKnown) {
  QUIRE_MODEL_VOCAB_OR_SKIP(vocab);
  const auto tokenizer = Make(vocab);
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  EXPECT_EQ(tokenizer->Spelling(tokenizer->bos()), "<|im_start|>");
  EXPECT_THAT(tokenizer->eos_ids(), ElementsAre(TokenId{2}, TokenId{0}));
  EXPECT_THAT(Ids(*tokenizer->Encode("Hi", {})), testing::SizeIs(1));  // no BOS is prescribed
}

}  // namespace
}  // namespace quire
