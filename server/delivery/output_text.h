// The text of one output as it grows: tokens in, deltas out whose text is exactly the visible bytes
// of their tokens. Holds back bytes that may still become a code point or a stop string, and the
// tokens they belong to. How the deltas are cut changes neither text nor tokens nor counts.
// Delivery thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/delivery/response_sink.h"
#include "server/delivery/stop_strings.h"

namespace quire {

class OutputText {
 public:
  explicit OutputText(const std::vector<std::string>& stop_strings) : matcher_(stop_strings) {}

  // Adds a token that adds `piece` to the text. `armed`: stop strings count from here on. A match
  // cuts the text (at its start, at its end with keep_stop); after it nothing may be added.
  std::optional<StopMatch> Add(OutToken token, std::string_view piece, bool armed, bool keep_stop);
  // A drawn token that is neither text nor listed (an end token).
  void AddUnlisted() { ++stop_tokens_; }
  // The output has ended: nothing is held back any more.
  void Finish();

  // Tokens that a delta may take now.
  int32_t ready() const { return static_cast<int32_t>(ready_); }
  // Takes at most ready() tokens, fewer if their text passes `soft_bytes`, and at least one.
  OutDelta Take(int64_t soft_bytes);

  int32_t listed_tokens() const { return listed_ + static_cast<int32_t>(tokens_.size() - first_); }
  int32_t stop_tokens() const { return stop_tokens_; }

 private:
  struct Held {
    OutToken token;
    int64_t end = 0;     // offset in the stream behind its last visible byte
    bool clean = false;  // no code point is unfinished there
  };
  void Cut(int64_t at);
  void Scan();
  void Compact();

  StopMatcher matcher_;
  std::string bytes_;  // of the stream from base_ on: belongs to tokens not taken
  int64_t base_ = 0, end_ = 0;
  std::vector<Held>
      tokens_;  // taken ones before first_ are gone; compacted when they outweigh the rest
  size_t first_ = 0;
  size_t scan_ = 0, ready_ = 0;  // tokens from first_ on: looked at; may be taken
  bool finished_ = false;
  int32_t listed_ = 0, stop_tokens_ = 0;  // listed_: taken
};

}  // namespace quire
