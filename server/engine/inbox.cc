#include "server/engine/inbox.h"

#include "absl/log/check.h"

// Who owns a Request: the intake until Submit, submits_ until Drain, then the scheduler. A slot
// outlives all three. An abort of a request that the intake still holds waits in the slot and
// follows its Submit.
namespace quire {

void InboxMessages::Clear() {
  submits.clear();
  aborts.clear();
  pauses.clear();
}

Inbox::Inbox(int32_t max_live) : max_live_(max_live) {
  CHECK_GT(max_live, 0);
  slots_.reserve(static_cast<size_t>(max_live));
  submits_.reserve(static_cast<size_t>(max_live));
  dirty_.reserve(static_cast<size_t>(max_live));
}

bool Inbox::Reserve(RequestId id) {
  absl::MutexLock lock(&mutex_);
  if (static_cast<int32_t>(slots_.size()) >= max_live_) return false;
  CHECK(slots_.try_emplace(id).second) << "request id used twice";
  return true;
}

void Inbox::MarkDirty(RequestId id, Slot& slot) {
  // A slot that the intake holds is not listed: the engine does not know the request yet.
  if (slot.dirty || slot.place == Place::kIntake) return;
  slot.dirty = true;
  dirty_.push_back(id);
}

void Inbox::AbortSlot(RequestId id, Slot& slot, FinishReason reason) {
  if (slot.abort != FinishReason::kNone) return;
  slot.abort = reason;
  MarkDirty(id, slot);
}

void Inbox::Abort(RequestId id, FinishReason reason) {
  CHECK(reason != FinishReason::kNone);
  absl::MutexLock lock(&mutex_);
  if (const auto it = slots_.find(id); it != slots_.end()) AbortSlot(id, it->second, reason);
}

void Inbox::SetPaused(RequestId id, bool paused) {
  absl::MutexLock lock(&mutex_);
  const auto it = slots_.find(id);
  if (it == slots_.end() || it->second.paused == paused) return;
  it->second.paused = paused;
  MarkDirty(id, it->second);
}

void Inbox::AbortNotStarted(FinishReason reason) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, slot] : slots_) {
    if (!slot.started) AbortSlot(id, slot, reason);
  }
}

void Inbox::AbortAll(FinishReason reason) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, slot] : slots_) AbortSlot(id, slot, reason);
}

int32_t Inbox::live() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int32_t>(slots_.size());
}

bool Inbox::WaitUntilEmpty(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(this, &Inbox::Empty), timeout);
}

void Inbox::Submit(Request request) {
  absl::MutexLock lock(&mutex_);
  const RequestId id = request.id;
  const auto it = slots_.find(id);
  CHECK(it != slots_.end()) << "submit without a slot";
  Slot& slot = it->second;
  slot.place = Place::kMailbox;
  submits_.push_back(std::move(request));
  if (slot.abort != FinishReason::kNone || slot.paused) MarkDirty(id, slot);
}

FinishReason Inbox::AbortReason(RequestId id) const {
  absl::MutexLock lock(&mutex_);
  const auto it = slots_.find(id);
  return it == slots_.end() ? FinishReason::kNone : it->second.abort;
}

void Inbox::Release(RequestId id) {
  absl::MutexLock lock(&mutex_);
  slots_.erase(id);
}

void Inbox::Drain(InboxMessages& out) {
  out.Clear();
  absl::MutexLock lock(&mutex_);
  woken_ = false;
  std::swap(out.submits, submits_);
  for (const Request& request : out.submits) slots_.find(request.id)->second.place = Place::kEngine;
  for (const RequestId id : dirty_) {
    const auto it = slots_.find(id);
    if (it == slots_.end()) continue;  // it ended in the meantime
    Slot& slot = it->second;
    slot.dirty = false;
    if (slot.abort != FinishReason::kNone && !slot.abort_sent) {
      slot.abort_sent = true;
      out.aborts.emplace_back(id, slot.abort);
    }
    if (slot.paused != slot.paused_sent) {
      slot.paused_sent = slot.paused;
      out.pauses.emplace_back(id, slot.paused);
    }
  }
  dirty_.clear();
}

void Inbox::MarkStarted(std::span<const SequenceId> admitted) {
  if (admitted.empty()) return;
  absl::MutexLock lock(&mutex_);
  for (const SequenceId& sequence : admitted) {
    if (const auto it = slots_.find(sequence.request); it != slots_.end())
      it->second.started = true;
  }
}

void Inbox::Finished(std::span<const RequestId> ids) {
  if (ids.empty()) return;
  absl::MutexLock lock(&mutex_);
  for (const RequestId id : ids) slots_.erase(id);
}

void Inbox::WaitForWork(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(this, &Inbox::HasMessages), timeout);
}

void Inbox::Wake() {
  absl::MutexLock lock(&mutex_);
  woken_ = true;
}

}  // namespace quire
