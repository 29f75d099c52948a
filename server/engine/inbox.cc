#include "server/engine/inbox.h"

#include <bit>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"

// Who owns a Request: the intake until Submit, submits_ until Drain, then the scheduler. A slot
// outlives all three. An abort of a request that the intake still holds waits in the slot and
// follows its Submit.
namespace quire {

void InboxMessages::Clear() {
  submits.clear();
  ends.clear();
  aborts.clear();
  pauses.clear();
}

Inbox::Inbox(const InboxLimits& limits) : limits_(limits) {
  CHECK_GT(limits.sequences, 0);
  const auto slots = static_cast<size_t>(limits.sequences);  // a slot has a sequence at least
  slots_.reserve(slots);
  submits_.reserve(slots);
  dirty_.reserve(slots);
}

bool Inbox::HasRoom(int32_t sequences) const {
  return reserved_sequences() + sequences <= limits_.sequences;
}

bool Inbox::HasRoomForTokens(int64_t more) const {
  const int64_t waiting = waiting_tokens();
  return waiting == 0 || more <= limits_.waiting_tokens - waiting;
}

Room Inbox::Reserve(RequestId id, int32_t sequences, int64_t tokens) {
  CHECK(sequences >= 1 && sequences <= kMostOutputs && tokens >= 1);
  // Twice: in a storm nobody waits for the lock to be refused; with it the answer is exact.
  const auto look = [&] {
    return !HasRoom(sequences)         ? Room::kNoSequences
           : !HasRoomForTokens(tokens) ? Room::kNoTokens
                                       : Room::kTaken;
  };
  if (const Room room = look(); room != Room::kTaken) return room;
  absl::MutexLock lock(&mutex_);
  if (const Room room = look(); room != Room::kTaken) return room;
  const auto [it, added] = slots_.try_emplace(id);
  CHECK(added) << "request id used twice";
  it->second.sequences = sequences;
  it->second.tokens = tokens;
  sequences_.fetch_add(sequences, std::memory_order_relaxed);
  tokens_.fetch_add(tokens, std::memory_order_relaxed);
  return Room::kTaken;
}

bool Inbox::ReserveTokens(RequestId id, int64_t tokens) {
  absl::MutexLock lock(&mutex_);
  const auto it = slots_.find(id);
  CHECK(it != slots_.end() && it->second.place == Place::kIntake);
  const int64_t more = tokens - it->second.tokens;
  // Its own reservation does not count as waiting.
  if (tokens_.load(std::memory_order_relaxed) != it->second.tokens && more > 0 &&
      !HasRoomForTokens(more)) {
    return false;
  }
  it->second.tokens = tokens;
  tokens_.fetch_add(more, std::memory_order_relaxed);
  return true;
}

void Inbox::Free(Slots::iterator it) {
  sequences_.fetch_sub(it->second.sequences, std::memory_order_relaxed);
  tokens_.fetch_sub(it->second.tokens, std::memory_order_relaxed);
  slots_.erase(it);
}

absl::Status Inbox::Audit() const {
  absl::MutexLock lock(&mutex_);
  int64_t sequences = 0, tokens = 0;
  for (const auto& [id, slot] : slots_) {
    sequences += slot.sequences;
    tokens += slot.tokens;
  }
  if (sequences == reserved_sequences() && tokens == waiting_tokens()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("reserved sequences ", reserved_sequences(), " for ",
                                          sequences, ", tokens ", waiting_tokens(), " for ",
                                          tokens));
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

void Inbox::EndOutput(SequenceId id) {
  CHECK(id.output_index >= 0 && id.output_index < kMostOutputs);
  absl::MutexLock lock(&mutex_);
  const auto it = slots_.find(id.request);
  if (it == slots_.end()) return;
  it->second.ended |= uint64_t{1} << id.output_index;
  MarkDirty(id.request, it->second);
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
  if (const auto it = slots_.find(id); it != slots_.end()) Free(it);
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
    for (uint64_t ends = slot.ended & ~slot.ended_sent; ends != 0; ends &= ends - 1) {
      out.ends.push_back({.request = id, .output_index = std::countr_zero(ends)});
    }
    slot.ended_sent = slot.ended;
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
    const auto it = slots_.find(sequence.request);
    if (it == slots_.end() || it->second.started) continue;
    it->second.started = true;
    tokens_.fetch_sub(std::exchange(it->second.tokens, 0), std::memory_order_relaxed);
  }
}

void Inbox::Finished(std::span<const RequestId> ids) {
  if (ids.empty()) return;
  absl::MutexLock lock(&mutex_);
  for (const RequestId id : ids) {
    if (const auto it = slots_.find(id); it != slots_.end()) Free(it);
  }
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
