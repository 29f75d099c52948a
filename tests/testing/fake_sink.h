// A ResponseSink that remembers. Thread-safe, so that a test can wait for the end of a request.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "server/delivery/response_sink.h"

namespace quire {

class FakeSink final : public ResponseSink {
 public:
  void OnDelta(OutDelta delta) override;
  void OnFinished(OutFinished finished) override;
  void OnEnd(absl::Status status) override;
  int64_t BufferedBytes() const override;

  void SetBufferedBytes(int64_t bytes);  // what a slow reader has not taken
  bool WaitForEnd(std::chrono::milliseconds timeout = std::chrono::seconds(20));

  // Copies, under the lock.
  std::vector<OutDelta> deltas() const;
  std::vector<OutFinished> finished() const;
  std::vector<absl::Status> ends() const;  // exactly one when all is well
  std::string Text(int32_t output_index = 0) const;
  std::vector<OutToken> Tokens(int32_t output_index = 0) const;
  int32_t calls_after_end() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<OutDelta> deltas_;
  std::vector<OutFinished> finished_;
  std::vector<absl::Status> ends_;
  int64_t buffered_bytes_ = 0;
  int32_t calls_after_end_ = 0;
};

}  // namespace quire
