// The hand-over from delivery to one Generate call: messages wait here while a write is in flight,
// and text that arrives meanwhile joins the last of them, up to kMaxMessageBytes. Delivery thread
// appends; the call's poller takes. Shared by the two; the news wakes the call at the poller's next
// Poke.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "quire/v1/inference.pb.h"
#include "server/delivery/response_sink.h"
#include "server/rpc/call_task.h"

namespace quire {

class GenerateSink final : public ResponseSink {
 public:
  static constexpr int64_t kMaxMessageBytes = 1 << 20;

  explicit GenerateSink(Poller& poller)
      : signal_(std::make_shared<Signal>(poller)), ended_(std::make_shared<Signal>(poller)) {}

  void OnDelta(OutDelta delta) override;
  void OnFinished(OutFinished finished) override;
  void OnEnd(absl::Status status) override;
  int64_t BufferedBytes() const override;

  // The call's side. The next message, whose bytes count as buffered until Written.
  std::optional<v1::GenerateResponse> Take();
  void Written();
  // Set once no further message will come; messages may still wait.
  std::optional<absl::Status> end() const;
  Signal& news() { return *signal_; }
  const std::shared_ptr<Signal>& ended() const { return ended_; }  // raised once, by OnEnd

 private:
  struct Message {
    v1::GenerateResponse proto;
    int64_t bytes = 0;  // estimate of its size on the wire
  };
  void AppendPart(OutDelta part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Signal> signal_, ended_;
  mutable absl::Mutex mutex_;
  std::deque<Message> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t buffered_ ABSL_GUARDED_BY(mutex_) = 0;  // waiting and in flight
  int64_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire
