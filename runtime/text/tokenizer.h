// Text to ids and ids to bytes. Implementations are immutable after construction and safe for any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/ids.h"

namespace quire {

struct TokenSpan {
  TokenId id = TokenId::kNone;
  int32_t begin_byte = 0, end_byte = 0;  // offsets into the encoded text
  bool special = false;                  // a control token
};

struct EncodeOptions {
  bool add_special_tokens = true;  // BOS/EOS as the tokenizer prescribes
  // Read control tokens spelled out in the text as control tokens.
  bool parse_special_tokens = false;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // INVALID_ARGUMENT if text is not valid UTF-8.
  virtual absl::StatusOr<std::vector<TokenSpan>> Encode(std::string_view text,
                                                        const EncodeOptions& options) const = 0;
  // A lower bound of the tokens that Encode makes of `text`, without encoding it: its bytes over
  // those of the longest token.
  virtual int64_t AtLeastTokens(std::string_view text) const = 0;
  // Bytes that a token adds to the text (may split a code point); empty for control tokens. id <
  // vocab_size().
  virtual std::string_view Piece(TokenId id) const = 0;
  // As spelled in the vocabulary, control tokens too: "<|im_end|>".
  virtual std::string_view Spelling(TokenId id) const = 0;
  virtual bool IsControl(TokenId id) const = 0;
  virtual int32_t vocab_size() const = 0;
  virtual TokenId bos() const = 0;  // kNone if there is none
  virtual const std::vector<TokenId>& eos_ids()
      const = 0;  // tokens that end a generation: EOS, EOT
};

}  // namespace quire
