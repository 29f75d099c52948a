#include "server/engine/step_events.h"

#include <iterator>
#include <utility>

// Storage travels in circles: Publish and Take swap whole batches, so that after a while every
// vector has the capacity it needs and a step allocates nothing.
namespace quire {

void EventBatch::Clear() {
  prepared.clear();
  refused.clear();
  admitted.clear();
  tokens.clear();
}

void StepEvents::Publish(EventBatch& batch) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &StepEvents::HasRoom));
  EventBatch& place = ring_[(head_ + count_) % ring_.size()];
  std::swap(place, batch);
  ++count_;
  batch.Clear();
}

void StepEvents::Prepare(const RequestPrepared& prepared) {
  absl::MutexLock lock(&mutex_);
  early_.prepared.push_back(prepared);
}

void StepEvents::Refuse(RequestRefused refused) {
  absl::MutexLock lock(&mutex_);
  early_.refused.push_back(std::move(refused));
}

bool StepEvents::Take(EventBatch& out, absl::Duration timeout) {
  out.Clear();
  absl::MutexLock lock(&mutex_);
  const bool news = mutex_.AwaitWithTimeout(absl::Condition(this, &StepEvents::HasNews), timeout);
  woken_ = false;
  if (!news) return false;
  if (count_ > 0) {
    std::swap(out, ring_[head_]);
    head_ = (head_ + 1) % ring_.size();
    --count_;
  }
  // A request's Prepare happened before its Submit, so before its first step: this keeps that
  // order.
  std::swap(out.prepared, early_.prepared);
  out.refused.insert(out.refused.end(), std::make_move_iterator(early_.refused.begin()),
                     std::make_move_iterator(early_.refused.end()));
  early_.Clear();
  return !out.empty();
}

void StepEvents::Wake() {
  absl::MutexLock lock(&mutex_);
  woken_ = true;
}

}  // namespace quire
