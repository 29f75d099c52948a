#include "tests/testing/fake_tokenizer.h"

#include <algorithm>

#include "absl/status/status.h"

namespace quire {
namespace {

// Whole and well formed up to surrogates and overlong forms, which no test of ours needs refused
// here.
bool LooksLikeUtf8(std::string_view text) {
  int continuation = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (continuation > 0) {
      if ((byte & 0xC0) != 0x80) return false;
      --continuation;
    } else if (byte >= 0x80) {
      if (byte < 0xC2 || byte > 0xF4) return false;
      continuation = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    }
  }
  return continuation == 0;
}

}  // namespace

FakeTokenizer::FakeTokenizer(std::vector<std::string> pieces) {
  for (int32_t byte = 0; byte < 256; ++byte) spellings_.emplace_back(1, static_cast<char>(byte));
  for (const char* control : {"<s>", "</s>", "<|im_start|>", "<|im_end|>"})
    spellings_.emplace_back(control);
  for (std::string& piece : pieces) spellings_.push_back(std::move(piece));
}

bool FakeTokenizer::IsControl(TokenId id) const { return id >= kBos && id <= kImEnd; }

std::string_view FakeTokenizer::Spelling(TokenId id) const {
  return spellings_.at(static_cast<size_t>(id));
}

std::string_view FakeTokenizer::Piece(TokenId id) const {
  return IsControl(id) ? std::string_view() : Spelling(id);
}

TokenSpan FakeTokenizer::Longest(std::string_view text, size_t at, bool parse_special) const {
  TokenSpan best;
  for (size_t id = 0; id < spellings_.size(); ++id) {
    const bool control = IsControl(TokenId{static_cast<int32_t>(id)});
    const auto length = static_cast<int32_t>(spellings_[id].size());
    if (control && !parse_special) continue;
    if (length <= best.end_byte - best.begin_byte || !text.substr(at).starts_with(spellings_[id]))
      continue;
    best = {TokenId{static_cast<int32_t>(id)}, static_cast<int32_t>(at),
            static_cast<int32_t>(at) + length, control};
  }
  return best;
}

int64_t FakeTokenizer::AtLeastTokens(std::string_view text) const {
  size_t longest = 1;
  for (const std::string& spelling : spellings_) longest = std::max(longest, spelling.size());
  return static_cast<int64_t>((text.size() + longest - 1) / longest);
}

absl::StatusOr<std::vector<TokenSpan>> FakeTokenizer::Encode(std::string_view text,
                                                             const EncodeOptions& options) const {
  ++encodes_;
  if (!LooksLikeUtf8(text)) return absl::InvalidArgumentError("text is not valid UTF-8");
  std::vector<TokenSpan> tokens;
  if (options.add_special_tokens) tokens.push_back({kBos, 0, 0, true});
  for (size_t at = 0; at < text.size(); at = static_cast<size_t>(tokens.back().end_byte)) {
    tokens.push_back(Longest(text, at, options.parse_special_tokens));
  }
  return tokens;
}

}  // namespace quire
