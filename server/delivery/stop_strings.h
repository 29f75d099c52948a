// Finds stop strings in a growing byte stream: the match that completes first ends it, the longest
// on a tie. One instance per output; delivery thread only. Memory is fixed at construction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire {

struct StopMatch {
  int64_t begin = 0, end = 0;  // byte offsets in the whole stream
  int32_t index = 0;           // which string
};

class StopMatcher {
 public:
  explicit StopMatcher(const std::vector<std::string>& strings);  // each at least 1 byte

  // Reads `bytes`; stops reading at the first match. Unarmed, a completed match is passed over
  // (min_tokens), but a match may begin in unarmed bytes and complete in armed ones.
  std::optional<StopMatch> Append(std::string_view bytes, bool armed);

  // Trailing bytes that may still grow into a match; less than the longest string.
  int64_t held() const { return held_; }
  bool empty() const { return patterns_.empty(); }

 private:
  struct Pattern {
    std::string text;
    std::vector<int32_t> fallback;  // [size]: longest proper border of text[0..i]
    int32_t matched = 0;  // longest prefix that is a suffix of the stream; < size between bytes
  };
  static void Advance(Pattern& pattern, char byte);

  std::vector<Pattern> patterns_;
  int64_t position_ = 0;  // bytes read
  int64_t held_ = 0;
};

}  // namespace quire
