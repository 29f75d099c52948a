#include "tests/runtime/text/text_fixtures.h"

#include "absl/log/check.h"
#include "runtime/loader/model_file.h"
#include "runtime/loader/model_header.h"

namespace quire {

std::string ToAlphabet(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const int b = static_cast<uint8_t>(c);
    int point = b;
    if (b <= ' ') {
      point = 0x100 + b;
    } else if (b >= 0x7F && b <= 0xA0) {
      point = 0x121 + (b - 0x7F);
    } else if (b == 0xAD) {
      point = 0x143;
    }
    if (point < 0x80) {
      out.push_back(static_cast<char>(point));
    } else {
      out.push_back(static_cast<char>(0xC0 | point >> 6));
      out.push_back(static_cast<char>(0x80 | (point & 0x3F)));
    }
  }
  return out;
}

VocabData SmallVocab() {
  VocabData vocab;
  vocab.model = "gpt2";
  vocab.pre_tokenizer = "smollm";
  const auto add = [&](std::string piece, TokenKind kind) {
    vocab.pieces.push_back(std::move(piece));
    vocab.kinds.push_back(kind);
    return TokenId{static_cast<int32_t>(vocab.pieces.size()) - 1};
  };
  const auto merge = [&](std::string_view left, std::string_view right) {
    vocab.merges.push_back(ToAlphabet(left) + " " + ToAlphabet(right));
    add(ToAlphabet(left) + ToAlphabet(right), TokenKind::kNormal);
  };
  for (int b = 0; b < 256; ++b)
    add(ToAlphabet(std::string(1, static_cast<char>(b))), TokenKind::kNormal);
  merge("t", "h");
  merge("th", "e");
  merge(" ", "the");
  merge("a", "b");
  merge("\xC3", "\xA9");
  merge("\xC3\xA9", "\xC3\xA9");
  merge(" ", " ");
  merge("  ", "  ");
  vocab.bos = add("<|bos|>", TokenKind::kControl);
  add("<|im_start|>", TokenKind::kControl);
  vocab.eos = add("<|im_end|>", TokenKind::kControl);
  add("<|end|>", TokenKind::kControl);
  add("<tool>", TokenKind::kUserDefined);
  return vocab;
}

TokenId IdOf(const Tokenizer& tokenizer, std::string_view spelling) {
  for (int32_t i = 0; i < tokenizer.vocab_size(); ++i) {
    if (tokenizer.Spelling(TokenId{i}) == spelling) return TokenId{i};
  }
  return TokenId::kNone;
}

std::optional<VocabData> ModelVocab() {
  const char* path = std::getenv("QUIRE_TEST_MODEL");
  if (path == nullptr || *path == '\0') return std::nullopt;
  const auto file = ModelFile::Open(path);
  CHECK_OK(file.status());
  const auto header = ReadModelHeader(*file);
  CHECK_OK(header.status());
  return (*header)->vocab;
}

std::string Decode(const Tokenizer& tokenizer, const std::vector<TokenSpan>& tokens) {
  std::string out;
  for (const TokenSpan& span : tokens) out += tokenizer.Piece(span.id);
  return out;
}

std::vector<int32_t> Ids(const std::vector<TokenSpan>& tokens) {
  std::vector<int32_t> ids;
  for (const TokenSpan& span : tokens) ids.push_back(static_cast<int32_t>(span.id));
  return ids;
}

}  // namespace quire
