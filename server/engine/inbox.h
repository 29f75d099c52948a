// The engine's mailbox and the register of live requests. A request holds a slot from Reserve until
// its compute has ended; every message about it (submit, abort, pause) lives in the slot, so none
// is lost, none is doubled, and the memory is bounded by the number of slots. Any thread unless
// said otherwise; nothing here blocks but the Wait functions.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "scheduler/request.h"
#include "scheduler/token_event.h"

namespace quire {

// What the engine takes out at a step edge; apply in this order.
struct InboxMessages {
  std::vector<Request> submits;
  std::vector<std::pair<RequestId, FinishReason>> aborts;
  std::vector<std::pair<RequestId, bool>> pauses;

  void Clear();
};

class Inbox {
 public:
  explicit Inbox(int32_t max_live);  // slots: requests in intake, queue and batch together

  // A slot for a new request; false if all are taken.
  [[nodiscard]] bool Reserve(RequestId id);
  // Ends the request's compute for `reason` at the next step edge, whatever state it is in. The
  // first reason counts; unknown and ended ids are ignored.
  void Abort(RequestId id, FinishReason reason);
  void SetPaused(RequestId id, bool paused);
  // Drain: everything that was never scheduled; everything.
  void AbortNotStarted(FinishReason reason);
  void AbortAll(FinishReason reason);
  int32_t live() const;  // slots in use
  int32_t slots() const { return max_live_; }
  // Waits until no request holds a slot; false if `timeout` passes first.
  bool WaitUntilEmpty(absl::Duration timeout);

  // Intake thread.
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
  };
  void AbortSlot(RequestId id, Slot& slot, FinishReason reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkDirty(RequestId id, Slot& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasMessages() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return woken_ || !submits_.empty() || !dirty_.empty();
  }
  bool Empty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return slots_.empty(); }

  const int32_t max_live_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<RequestId, Slot> slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<Request> submits_ ABSL_GUARDED_BY(mutex_);
  std::vector<RequestId> dirty_
      ABSL_GUARDED_BY(mutex_);  // slots with an abort or a pause to deliver
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire
