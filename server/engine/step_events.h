// What the engine and the intake tell the delivery thread: one batch per engine step, plus news of
// requests that are prepared or refused before the scheduler sees them. Bounded: the engine waits
// when kMaxBatches are queued (delivery never waits for a client, so it catches up); the intake's
// news are bounded by live requests.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "scheduler/token_event.h"

namespace quire {

// Intake is done with a request and hands it to the engine; comes before any other event of it.
struct RequestPrepared {
  RequestId id = RequestId::kNone;
  int32_t prompt_tokens = 0;
  LengthBound length_bound = LengthBound::kNone;  // whose limit max_tokens is
  MonotonicTime at{};
};

// The request ends before the scheduler took it. Either a status that is not OK, or (with an OK
// status) the reason that would have ended it later: kCancelled, kAborted, kDeadline, kTimeLimit,
// kShutdown.
struct RequestRefused {
  RequestId id = RequestId::kNone;
  absl::Status status;
  FinishReason reason = FinishReason::kNone;
};

// A sequence was granted tokens for the first time, or again after a preemption.
struct SequenceAdmitted {
  SequenceId sequence;
  MonotonicTime at{};
  int32_t cached_tokens = 0;  // found in the prefix cache
};

struct EventBatch {
  MonotonicTime at{};  // when the step was committed
  std::vector<RequestPrepared> prepared;
  std::vector<RequestRefused> refused;
  std::vector<SequenceAdmitted> admitted;
  std::vector<TokenEvent> tokens;

  bool empty() const {
    return prepared.empty() && refused.empty() && admitted.empty() && tokens.empty();
  }
  void Clear();
};

class StepEvents {
 public:
  static constexpr size_t kMaxBatches = 64;

  // Engine thread. Takes the batch and leaves a cleared one, of recycled storage, in its place.
  void Publish(EventBatch& batch);
  // Intake thread.
  void Prepare(const RequestPrepared& prepared);
  void Refuse(RequestRefused refused);
  // Delivery thread. Waits up to `timeout` for news; false: none came. `out` is recycled.
  bool Take(EventBatch& out, absl::Duration timeout);
  // Any thread: wakes Take.
  void Wake();

 private:
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return woken_ || count_ > 0 || !early_.empty();
  }
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ < ring_.size(); }

  absl::Mutex mutex_;
  std::array<EventBatch, kMaxBatches> ring_
      ABSL_GUARDED_BY(mutex_);  // count_ filled ones from head_ on
  size_t head_ ABSL_GUARDED_BY(mutex_) = 0, count_ ABSL_GUARDED_BY(mutex_) = 0;
  EventBatch early_
      ABSL_GUARDED_BY(mutex_);  // of the intake: delivered before the next engine batch
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire
