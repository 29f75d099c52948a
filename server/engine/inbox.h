// The engine's mailbox, the register of live requests, and the door to the queue. A request holds a
// slot from Reserve until its compute has ended; every message about it (submit, abort, pause)
// lives in the slot, so none is lost, none is doubled, and the memory is bounded by the number of
// slots. What a slot reserves (sequences, prompt tokens that wait) is summed in two counters: a
// request that finds no room is refused at once, without a lock, and one that found it is never
// refused later. Any thread unless said otherwise; nothing here blocks but the Wait functions.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "scheduler/request.h"
#include "scheduler/token_event.h"

namespace quire {

struct InboxLimits {
  int32_t sequences = 0;               // of live requests: in intake, queue and batch together
  int64_t waiting_tokens = INT64_MAX;  // prompt tokens of requests that have not started
};

enum class Room : uint8_t { kTaken, kNoSequences, kNoTokens };

// What the engine takes out at a step edge; apply in this order.
struct InboxMessages {
  std::vector<Request> submits;
  std::vector<SequenceId> ends;  // outputs whose text is complete
  std::vector<std::pair<RequestId, FinishReason>> aborts;
  std::vector<std::pair<RequestId, bool>> pauses;

  void Clear();
};

class Inbox {
 public:
  static constexpr int32_t kMostOutputs = 64;  // of a request

  explicit Inbox(const InboxLimits& limits);
  explicit Inbox(int32_t sequences) : Inbox(InboxLimits{.sequences = sequences}) {}

  // A slot for a new request of so many sequences, 1..kMostOutputs, whose prompt has at least
  // `tokens` tokens. Tokens beyond the limit are let in if none wait.
  [[nodiscard]] Room Reserve(RequestId id, int32_t sequences = 1, int64_t tokens = 1);
  // Ends the request's compute for `reason` at the next step edge, whatever state it is in. The
  // first reason counts; unknown and ended ids are ignored.
  void Abort(RequestId id, FinishReason reason);
  void SetPaused(RequestId id, bool paused);
  // Ends the compute of one output, whose text has come to its end; the others go on.
  void EndOutput(SequenceId id);
  // Drain: everything that was never scheduled; everything.
  void AbortNotStarted(FinishReason reason);
  void AbortAll(FinishReason reason);
  int32_t live() const;  // slots in use
  const InboxLimits& limits() const { return limits_; }
  int64_t reserved_sequences() const { return sequences_.load(std::memory_order_relaxed); }
  int64_t waiting_tokens() const { return tokens_.load(std::memory_order_relaxed); }
  // INTERNAL if the counters are not the sums over the slots.
  absl::Status Audit() const;
  // Waits until no request holds a slot; false if `timeout` passes first.
  bool WaitUntilEmpty(absl::Duration timeout);

  // Intake thread.
  // The prompt turned out to have `tokens` tokens. False: they do not fit; Release the slot.
  [[nodiscard]] bool ReserveTokens(RequestId id, int64_t tokens);
  void Submit(Request request);                  // its slot is reserved
  FinishReason AbortReason(RequestId id) const;  // kNone: nobody has aborted it
  void Release(RequestId id);  // it ends without the engine; also of a failed Submit by the poller

  // Engine thread.
  void Drain(InboxMessages& out);  // out is cleared first; storage is recycled
  void MarkStarted(std::span<const SequenceId> admitted);
  void Finished(std::span<const RequestId> ids);  // compute has ended: slots are free
  void WaitForWork(absl::Duration timeout);       // until a message, Wake, or timeout
  void Wake();

 private:
  enum class Place : uint8_t { kIntake, kMailbox, kEngine };
  struct Slot {
    Place place = Place::kIntake;
    bool started = false;
    bool dirty = false;  // listed in dirty_
    bool abort_sent = false;
    FinishReason abort = FinishReason::kNone;
    bool paused = false, paused_sent = false;
    uint64_t ended = 0, ended_sent = 0;  // bit i: output i
    int32_t sequences = 1;               // reserved
    int64_t tokens = 0;                  // reserved; 0 once started
  };
  using Slots = absl::flat_hash_map<RequestId, Slot>;
  bool HasRoom(int32_t sequences) const;
  bool HasRoomForTokens(int64_t more) const;
  void Free(Slots::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AbortSlot(RequestId id, Slot& slot, FinishReason reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkDirty(RequestId id, Slot& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasMessages() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return woken_ || !submits_.empty() || !dirty_.empty();
  }
  bool Empty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return slots_.empty(); }

  const InboxLimits limits_;
  std::atomic<int64_t> sequences_{0}, tokens_{0};  // written with mutex_ held
  mutable absl::Mutex mutex_;
  Slots slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<Request> submits_ ABSL_GUARDED_BY(mutex_);
  std::vector<RequestId> dirty_
      ABSL_GUARDED_BY(mutex_);  // slots with an abort, an end or a pause to deliver
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire
