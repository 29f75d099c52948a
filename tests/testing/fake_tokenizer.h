// A tokenizer whose ids can be read in a test: ids 0..255 are the bytes, then control tokens, then
// pieces of the test's choice (any bytes, also parts of code points). Encode takes the longest
// piece that matches. Any thread.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "runtime/text/tokenizer.h"

namespace quire {

class FakeTokenizer final : public Tokenizer {
 public:
  static constexpr TokenId kBos{256}, kEos{257}, kImStart{258}, kImEnd{259};
  static constexpr int32_t kFirstPiece = 260;

  explicit FakeTokenizer(std::vector<std::string> pieces = {});

  absl::StatusOr<std::vector<TokenSpan>> Encode(std::string_view text,
                                                const EncodeOptions& options) const override;
  int64_t AtLeastTokens(std::string_view text) const override;
  std::string_view Piece(TokenId id) const override;
  std::string_view Spelling(TokenId id) const override;
  bool IsControl(TokenId id) const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(spellings_.size()); }
  TokenId bos() const override { return kBos; }
  const std::vector<TokenId>& eos_ids() const override { return eos_; }

  // Encode calls so far, of all threads.
  int encodes() const { return encodes_.load(); }

 private:
  TokenSpan Longest(std::string_view text, size_t at, bool parse_special) const;

  mutable std::atomic<int> encodes_{0};
  std::vector<std::string> spellings_;
  std::vector<TokenId> eos_{kEos, kImEnd};
};

}  // namespace quire
