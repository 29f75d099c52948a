// Finds spelled-out tokens in text: leftmost, and of those that begin at one place the longest, as
// Hugging Face's added tokens are found. Immutable after construction; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.h"

namespace quire {

class ControlSplitter {
 public:
  struct Entry {
    std::string spelling;  // empty ones are left out; of equal ones the first wins
    TokenId id = TokenId::kNone;
  };
  struct Match {
    size_t begin = 0, end = 0;  // bytes; end == 0: none
    TokenId id = TokenId::kNone;
  };

  explicit ControlSplitter(std::vector<Entry> entries);

  // The first match at or after `from`. Time is linear in the bytes passed over.
  Match Next(std::string_view text, size_t from) const;

  // The longest match that begins at `at`.
  Match MatchAt(std::string_view text, size_t at) const;

  // Whether a spelling begins at `at`: all of it, or a part that goes on past the end of `text`.
  bool BeginsAt(std::string_view text, size_t at) const;

  // Whether `text` begins with the rest of a spelling that began before it.
  bool BeginsInside(std::string_view text) const;

 private:
  // Spellings form a trie: nodes_[0] is the root; a node's children are siblings linked by `next`.
  struct Node {
    char byte = 0;
    int32_t child = -1, next = -1;
    TokenId id = TokenId::kNone;
  };
  int32_t Child(int32_t node, char byte) const;

  std::vector<Entry> entries_;
  std::vector<Node> nodes_;
  std::array<int32_t, 256> first_;  // child of the root by byte, or -1
};

}  // namespace quire
