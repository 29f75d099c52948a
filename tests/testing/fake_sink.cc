#include "tests/testing/fake_sink.h"

#include <utility>

namespace quire {

void FakeSink::OnDelta(OutDelta delta) {
  const std::lock_guard lock(mutex_);
  calls_after_end_ += ends_.empty() ? 0 : 1;
  deltas_.push_back(std::move(delta));
}

void FakeSink::OnFinished(OutFinished finished) {
  const std::lock_guard lock(mutex_);
  calls_after_end_ += ends_.empty() ? 0 : 1;
  finished_.push_back(std::move(finished));
}

void FakeSink::OnEnd(absl::Status status) {
  const std::lock_guard lock(mutex_);
  ends_.push_back(std::move(status));
  ended_.notify_all();
}

int64_t FakeSink::BufferedBytes() const {
  const std::lock_guard lock(mutex_);
  return buffered_bytes_;
}

void FakeSink::SetBufferedBytes(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  buffered_bytes_ = bytes;
}

bool FakeSink::WaitForEnd(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, timeout, [this] { return !ends_.empty(); });
}

std::vector<OutDelta> FakeSink::deltas() const {
  const std::lock_guard lock(mutex_);
  return deltas_;
}

std::vector<OutFinished> FakeSink::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

std::vector<absl::Status> FakeSink::ends() const {
  const std::lock_guard lock(mutex_);
  return ends_;
}

std::string FakeSink::Text(int32_t output_index) const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const OutDelta& delta : deltas_) {
    if (delta.output_index == output_index) text += delta.text;
  }
  return text;
}

std::vector<OutToken> FakeSink::Tokens(int32_t output_index) const {
  const std::lock_guard lock(mutex_);
  std::vector<OutToken> tokens;
  for (const OutDelta& delta : deltas_) {
    if (delta.output_index == output_index)
      tokens.insert(tokens.end(), delta.tokens.begin(), delta.tokens.end());
  }
  return tokens;
}

int32_t FakeSink::calls_after_end() const {
  const std::lock_guard lock(mutex_);
  return calls_after_end_;
}

}  // namespace quire
