#include "server/rpc/generate_sink.h"

#include <algorithm>
#include <utility>

#include "runtime/text/utf8.h"
#include "server/rpc/to_proto.h"

namespace quire {
namespace {

constexpr int64_t kOverheadBytes = 32;  // of a message or a nested one: tags, lengths, numbers

int64_t SizeOf(const OutToken& token) {
  int64_t bytes = kOverheadBytes + static_cast<int64_t>(token.piece.size());
  for (const OutCandidate& top : token.top) bytes += 16 + static_cast<int64_t>(top.piece.size());
  return bytes;
}

int64_t SizeOf(const OutDelta& delta) {
  int64_t bytes = kOverheadBytes + static_cast<int64_t>(delta.text.size());
  for (const OutToken& token : delta.tokens) bytes += SizeOf(token);
  return bytes;
}

int64_t VisibleBytes(const OutToken& token) {
  return token.visible_bytes.value_or(static_cast<int32_t>(token.piece.size()));
}

// Takes a head of at most kMaxMessageBytes off `delta`: whole tokens with exactly their text. A
// delta without tokens is cut between code points; one whose text is not its pieces' bytes (U+FFFD)
// keeps its text together.
OutDelta TakeHead(OutDelta& delta) {
  OutDelta head;
  head.output_index = delta.output_index;
  const size_t limit = GenerateSink::kMaxMessageBytes - kOverheadBytes;
  if (delta.tokens.empty()) {
    const size_t cut = CutBefore(delta.text, limit);
    head.text = delta.text.substr(0, cut);
    delta.text.erase(0, cut);
    return head;
  }
  size_t visible = 0;
  for (const OutToken& token : delta.tokens) visible += static_cast<size_t>(VisibleBytes(token));
  const bool divisible = delta.text.empty() || visible == delta.text.size();
  size_t take = 0, bytes = 0, text = 0, best = 0, best_text = 0;
  while (divisible && take < delta.tokens.size()) {
    bytes += static_cast<size_t>(SizeOf(delta.tokens[take]) + VisibleBytes(delta.tokens[take]));
    if (bytes > limit && best > 0) break;
    text += static_cast<size_t>(VisibleBytes(delta.tokens[take]));
    ++take;
    if (delta.text.empty() || CutBefore(delta.text, text) == std::min(text, delta.text.size())) {
      best = take;
      best_text = std::min(text, delta.text.size());
    }
  }
  if (best == 0) best = delta.tokens.size();
  if (best == delta.tokens.size()) best_text = delta.text.size();
  head.text = delta.text.substr(0, best_text);
  delta.text.erase(0, best_text);
  const auto end = delta.tokens.begin() + static_cast<std::ptrdiff_t>(best);
  head.tokens.assign(std::make_move_iterator(delta.tokens.begin()), std::make_move_iterator(end));
  delta.tokens.erase(delta.tokens.begin(), end);
  return head;
}

}  // namespace

void GenerateSink::AppendPart(OutDelta part) {
  const int64_t bytes = SizeOf(part);
  const bool joins =
      !waiting_.empty() && waiting_.back().proto.has_delta() &&
      waiting_.back().proto.delta().output_index() == static_cast<uint32_t>(part.output_index) &&
      waiting_.back().bytes + bytes <= kMaxMessageBytes;
  if (!joins) {
    waiting_.emplace_back().bytes = kOverheadBytes;
    waiting_.back().proto.mutable_delta()->set_output_index(
        static_cast<uint32_t>(part.output_index));
    buffered_ += kOverheadBytes;
  }
  Message& message = waiting_.back();
  v1::Delta* delta = message.proto.mutable_delta();
  delta->mutable_text()->append(part.text);
  for (OutToken& token : part.tokens) ToProto(std::move(token), delta->add_tokens());
  message.bytes += bytes;
  buffered_ += bytes;
}

void GenerateSink::OnDelta(OutDelta delta) {
  absl::MutexLock lock(&mutex_);
  while (SizeOf(delta) > kMaxMessageBytes) {
    OutDelta head = TakeHead(delta);
    const bool all = delta.text.empty() && delta.tokens.empty();
    AppendPart(std::move(head));
    if (all) {
      signal_->Raise();
      return;
    }
  }
  AppendPart(std::move(delta));
  signal_->Raise();
}

void GenerateSink::OnFinished(OutFinished finished) {
  absl::MutexLock lock(&mutex_);
  Message& message = waiting_.emplace_back();
  ToProto(finished, &message.proto);
  message.bytes = 4 * kOverheadBytes;
  buffered_ += message.bytes;
  signal_->Raise();
}

void GenerateSink::OnEnd(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  end_ = std::move(status);
  signal_->Raise();
  ended_->Raise();
}

int64_t GenerateSink::BufferedBytes() const {
  absl::MutexLock lock(&mutex_);
  return buffered_;
}

std::optional<v1::GenerateResponse> GenerateSink::Take() {
  absl::MutexLock lock(&mutex_);
  if (waiting_.empty()) return std::nullopt;
  v1::GenerateResponse out = std::move(waiting_.front().proto);
  in_flight_ = waiting_.front().bytes;
  waiting_.pop_front();
  return out;
}

void GenerateSink::Written() {
  absl::MutexLock lock(&mutex_);
  buffered_ -= std::exchange(in_flight_, 0);
}

std::optional<absl::Status> GenerateSink::end() const {
  absl::MutexLock lock(&mutex_);
  return waiting_.empty() ? end_ : std::nullopt;
}

}  // namespace quire
