// Ids equal Hugging Face's on the committed corpus and on seeded random UTF-8 (tests/golden/text).
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/text/hf_tokenizer.h"
#include "tests/runtime/text/text_fixtures.h"

namespace quire {
namespace {

struct GoldenCase {
  std::string name, text;
  std::vector<int32_t> smollm, gpt2, parsed;
};

std::vector<GoldenCase> ReadCases() {
  const char* other = std::getenv("QUIRE_GOLDEN_IDS");  // a larger file than the committed one
  std::ifstream in(other != nullptr ? other : QUIRE_GOLDEN_TEXT "/ids.json");
  const nlohmann::json file = nlohmann::json::parse(in);
  std::vector<GoldenCase> cases;
  for (const auto& json : file) {
    GoldenCase c{.name = json["name"],
                 .text = json["text"],
                 .smollm = json["smollm"],
                 .gpt2 = {},
                 .parsed = {}};
    c.gpt2 = json.value("gpt2", c.smollm);
    c.parsed = json.value("parsed", c.smollm);
    cases.push_back(std::move(c));
  }
  return cases;
}

void ExpectIds(const VocabData& vocab, bool parse, std::vector<int32_t> GoldenCase::* wanted) {
  const auto tokenizer = MakeTokenizer(vocab);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::vector<GoldenCase> cases = ReadCases();
  ASSERT_GE(cases.size(), 300u);
  for (const GoldenCase& c : cases) {
    const auto tokens =
        (*tokenizer)->Encode(c.text, {.add_special_tokens = false, .parse_special_tokens = parse});
    ASSERT_TRUE(tokens.ok()) << c.name << ": " << tokens.status();
    EXPECT_THAT(Ids(*tokens), testing::ElementsAreArray(c.*wanted)) << c.name << ": " << c.text;
  }
}

TEST(GoldenIds, SmollmEqualsHuggingFace) {
  QUIRE_MODEL_VOCAB_OR_SKIP(vocab);
  EXPECT_EQ(vocab.pre_tokenizer, "smollm");
  ExpectIds(vocab, false, &GoldenCase::smollm);
}

TEST(GoldenIds, Gpt2EqualsHuggingFace) {
  QUIRE_MODEL_VOCAB_OR_SKIP(vocab);
  VocabData gpt2 = vocab;
  gpt2.pre_tokenizer = "gpt-2";
  ExpectIds(gpt2, false, &GoldenCase::gpt2);
}

TEST(GoldenIds, ParsedControlTokensEqualHuggingFace) {
  QUIRE_MODEL_VOCAB_OR_SKIP(vocab);
  ExpectIds(vocab, true, &GoldenCase::parsed);
}

}  // namespace
}  // namespace quire
