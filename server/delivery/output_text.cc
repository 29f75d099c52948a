#include "server/delivery/output_text.h"

#include <algorithm>
#include <utility>

#include "absl/log/check.h"
#include "runtime/text/utf8.h"

// The point behind a token may end a delta if no code point is unfinished there and no byte before
// it is held for a stop string. Both are properties of the byte stream alone, and a held part never
// moves to the left; so what is ready stays ready, and every way to cut the stream gives the same
// concatenation.
namespace quire {
namespace {

constexpr int64_t kTokenOverhead = 48;  // rough wire size of a listed token without its piece
constexpr int64_t kTopOverhead = 24;

int64_t WireBytes(const OutToken& token) {
  return kTokenOverhead + static_cast<int64_t>(token.piece.size()) +
         kTopOverhead * static_cast<int64_t>(token.top.size());
}

}  // namespace

std::optional<StopMatch> OutputText::Add(OutToken token, std::string_view piece, bool armed,
                                         bool keep_stop) {
  CHECK(!finished_);
  bytes_.append(piece);
  end_ += static_cast<int64_t>(piece.size());
  // Three bytes back are enough to see whether a code point is open; the bytes before base_ end
  // cleanly.
  const std::string_view tail =
      std::string_view(bytes_).substr(bytes_.size() - std::min<size_t>(bytes_.size(), 4));
  tokens_.push_back(
      {.token = std::move(token), .end = end_, .clean = CompletePrefix(tail) == tail.size()});
  const std::optional<StopMatch> match = matcher_.Append(piece, armed);
  if (match.has_value()) {
    Cut(keep_stop ? match->end : match->begin);
    Finish();
  } else {
    Scan();
  }
  return match;
}

void OutputText::Finish() {
  finished_ = true;
  ready_ = scan_ = tokens_.size() - first_;
}

void OutputText::Scan() {
  const int64_t safe = end_ - matcher_.held();
  for (; first_ + scan_ < tokens_.size() && tokens_[first_ + scan_].end <= safe; ++scan_) {
    if (tokens_[first_ + scan_].clean) ready_ = scan_ + 1;
  }
}

void OutputText::Cut(int64_t at) {
  // Tokens that end before the cut are whole; one across it is listed with what is left of it; the
  // rest are stop tokens. All of those are still here: nothing beyond the start of a match was ever
  // ready.
  while (tokens_.size() > first_ && tokens_.back().end > at) {
    const int64_t begin = tokens_.size() - first_ > 1 ? tokens_[tokens_.size() - 2].end : base_;
    if (begin < at) {
      tokens_.back().end = at;
      tokens_.back().token.visible_bytes = static_cast<int32_t>(at - begin);
      break;
    }
    tokens_.pop_back();
    ++stop_tokens_;
  }
  CHECK_GE(at, base_);
  bytes_.resize(static_cast<size_t>(at - base_));
  end_ = at;
}

OutDelta OutputText::Take(int64_t soft_bytes) {
  CHECK_GT(ready_, 0u);
  // As many tokens as fit; a delta ends at a clean point, or at the end of the output.
  size_t count = 0;
  int64_t size = 0;
  for (size_t i = 0; i < ready_; ++i) {
    const Held& held = tokens_[first_ + i];
    size += WireBytes(held.token);
    if (count > 0 && size + held.end - base_ > soft_bytes) break;
    if (held.clean || i + 1 == ready_) count = i + 1;
  }
  OutDelta delta;
  const int64_t end = tokens_[first_ + count - 1].end;
  AppendUtf8(std::string_view(bytes_).substr(0, static_cast<size_t>(end - base_)), delta.text);
  delta.tokens.reserve(count);
  for (size_t i = 0; i < count; ++i) delta.tokens.push_back(std::move(tokens_[first_ + i].token));
  bytes_.erase(0, static_cast<size_t>(end - base_));
  base_ = end;
  first_ += count;
  scan_ -= count;
  ready_ -= count;
  listed_ += static_cast<int32_t>(count);
  Compact();
  return delta;
}

void OutputText::Compact() {
  if (first_ * 2 < tokens_.size()) return;
  tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(first_));
  first_ = 0;
}

}  // namespace quire
