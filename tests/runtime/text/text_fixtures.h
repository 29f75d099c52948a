// Vocabularies for the tests of runtime/text: a small one made here, and the default model's.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/loader/vocab_data.h"
#include "runtime/text/tokenizer.h"

namespace quire {

// Every byte as a piece, merges for "the", " the", "ab", "éé" and runs of spaces, then control
// tokens
// <|bos|>, <|im_start|>, <|im_end|>, <|end|> and the user-defined token <tool>.
VocabData SmallVocab();
TokenId IdOf(const Tokenizer& tokenizer, std::string_view spelling);

// The spelling of `bytes` in the byte-level alphabet.
std::string ToAlphabet(std::string_view bytes);

// The vocabulary of the file that QUIRE_TEST_MODEL names; nothing if it is not set.
std::optional<VocabData> ModelVocab();

// The bytes of all tokens.
std::string Decode(const Tokenizer& tokenizer, const std::vector<TokenSpan>& tokens);

std::vector<int32_t> Ids(const std::vector<TokenSpan>& tokens);

}  // namespace quire

#define QUIRE_MODEL_VOCAB_OR_SKIP(name)                                         \
  const std::optional<VocabData> name##_maybe = ModelVocab();                   \
  if (!name##_maybe.has_value()) GTEST_SKIP() << "QUIRE_TEST_MODEL is not set"; \
  const VocabData& name = *name##_maybe
