#include "server/delivery/stop_strings.h"

#include <algorithm>

#include "absl/log/check.h"

// One Knuth-Morris-Pratt automaton per string: at most 16 strings, so a byte costs a few compares,
// and the longest live prefix (what must be held back) falls out of the states.
namespace quire {

StopMatcher::StopMatcher(const std::vector<std::string>& strings) {
  for (const std::string& text : strings) {
    CHECK(!text.empty());
    Pattern pattern{.text = text, .fallback = std::vector<int32_t>(text.size(), 0)};
    for (size_t i = 1; i < text.size(); ++i) {
      int32_t k = pattern.fallback[i - 1];
      while (k > 0 && text[static_cast<size_t>(k)] != text[i])
        k = pattern.fallback[static_cast<size_t>(k) - 1];
      pattern.fallback[i] = text[static_cast<size_t>(k)] == text[i] ? k + 1 : 0;
    }
    patterns_.push_back(std::move(pattern));
  }
}

void StopMatcher::Advance(Pattern& pattern, char byte) {
  int32_t k = pattern.matched;
  if (static_cast<size_t>(k) == pattern.text.size())
    k = pattern.fallback.back();  // after a match passed over
  while (k > 0 && pattern.text[static_cast<size_t>(k)] != byte)
    k = pattern.fallback[static_cast<size_t>(k) - 1];
  pattern.matched = pattern.text[static_cast<size_t>(k)] == byte ? k + 1 : 0;
}

std::optional<StopMatch> StopMatcher::Append(std::string_view bytes, bool armed) {
  if (patterns_.empty()) {
    position_ += static_cast<int64_t>(bytes.size());
    return std::nullopt;
  }
  for (const char byte : bytes) {
    ++position_;
    held_ = 0;
    std::optional<StopMatch> best;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      Pattern& pattern = patterns_[i];
      Advance(pattern, byte);
      const auto size = static_cast<int64_t>(pattern.text.size());
      if (pattern.matched < size) {
        held_ = std::max(held_, int64_t{pattern.matched});
        continue;
      }
      // A whole match that is passed over may still be the beginning of a longer one of its own
      // overlap.
      held_ = std::max(held_, int64_t{pattern.fallback.back()});
      if (!best.has_value() || size > best->end - best->begin) {
        best = StopMatch{
            .begin = position_ - size, .end = position_, .index = static_cast<int32_t>(i)};
      }
    }
    if (armed && best.has_value()) return best;
  }
  return std::nullopt;
}

}  // namespace quire
