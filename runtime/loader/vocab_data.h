// The vocabulary of a model file, as stored: what runtime/text makes a tokenizer of. Plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/ids.h"

namespace quire {

enum class TokenKind : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct VocabData {
  std::string model;                // tokenizer.ggml.model: "gpt2" = byte-level BPE
  std::string pre_tokenizer;        // tokenizer.ggml.pre: "smollm", "gpt-2", ...
  std::vector<std::string> pieces;  // by id, as stored (byte-level alphabet for BPE)
  std::vector<TokenKind> kinds;     // by id
  std::vector<std::string> merges;  // "left right", by rank
  TokenId bos = TokenId::kNone, eos = TokenId::kNone, eot = TokenId::kNone, pad = TokenId::kNone,
          unknown = TokenId::kNone;
  bool add_bos = false, add_eos = false;
  bool add_space_prefix = false;
  std::string chat_template;  // Jinja source; empty = the model has none
};

}  // namespace quire
