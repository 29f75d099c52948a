// Long monotonous texts are encoded completely, with constant stack, to the reference's ids; the
// time limit of the test stands for linear time.
#include <fstream>
#include <string>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/text/hf_tokenizer.h"
#include "tests/runtime/text/text_fixtures.h"

namespace quire {
namespace {

std::string HashOf(const std::vector<TokenSpan>& tokens) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const TokenSpan& span : tokens) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (static_cast<uint32_t>(span.id) >> shift & 0xFF)) * 0x100000001B3;
    }
  }
  return absl::StrFormat("%016x", hash);
}

std::string Repeat(const nlohmann::json& json) {
  std::string text = json["head"];
  const std::string unit = json["unit"];
  for (int i = json["repeat"]; i > 0; --i) text += unit;
  return text + std::string(json["tail"]);
}

TEST(HostileText, GivesTheReferencesIds) {
  QUIRE_MODEL_VOCAB_OR_SKIP(vocab);
  const auto tokenizer = MakeTokenizer(vocab);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::ifstream in(QUIRE_GOLDEN_TEXT "/hostile.json");
  const nlohmann::json file = nlohmann::json::parse(in);
  ASSERT_GE(file.size(), 20u);
  for (const auto& json : file) {
    const std::string text = Repeat(json);
    const auto tokens =
        (*tokenizer)->Encode(text, {.add_special_tokens = false, .parse_special_tokens = false});
    ASSERT_TRUE(tokens.ok()) << json.dump() << tokens.status();
    EXPECT_EQ(tokens->size(), json["count"].get<size_t>()) << json.dump();
    EXPECT_EQ(HashOf(*tokens), json["fnv"].get<std::string>()) << json.dump();
    if (json["unit"].get<std::string>() != "\x04") {  // the vocabulary has no piece for this byte
      EXPECT_EQ(Decode(**tokenizer, *tokens), text) << json.dump();
    }
  }
}

}  // namespace
}  // namespace quire
