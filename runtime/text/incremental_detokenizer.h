// Turns the tokens of one output into text as they come: bytes in, whole code points out. Bytes that may still
// become a code point wait (at most 3), bytes that never can become U+FFFD. One owner, one thread at a time;
// the tokenizer outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/ids.h"
#include "runtime/text/tokenizer.h"

namespace quire {

class IncrementalDetokenizer {
 public:
  static constexpr size_t kAll = static_cast<size_t>(-1);

  struct Taken {
    std::string text;      // valid UTF-8
    size_t raw_bytes = 0;  // bytes of pending() that this text stands for
  };

  explicit IncrementalDetokenizer(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // Appends the token's bytes to pending() and returns how many there are: 0 for a control token.
  int32_t Append(TokenId id);

  // Raw bytes appended and not yet taken: what a stop matcher reads.
  std::string_view pending() const { return std::string_view(bytes_).substr(taken_); }

  // Takes the whole code points among the first `limit` pending bytes. A code point that crosses the limit
  // stays, and so does one whose last bytes have not come yet. However the calls divide the bytes, the texts
  // add up to the same text.
  Taken Take(size_t limit = kAll);

  // The output has ended: takes the first `limit` pending bytes, U+FFFD for what is unfinished at their end,
  // and drops the rest.
  Taken Flush(size_t limit = kAll);

 private:
  const Tokenizer* tokenizer_;
  std::string bytes_;  // the first taken_ bytes are gone; cut off when they outweigh the rest
  size_t taken_ = 0;
};

}  // namespace quire
