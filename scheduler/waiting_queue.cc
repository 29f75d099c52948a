#include "scheduler/waiting_queue.h"

#include <algorithm>

#include "absl/log/check.h"

namespace quire {

void WaitingQueue::Insert(Sequence& sequence) {
  const auto place = std::ranges::lower_bound(items_, sequence.order, {}, &Sequence::order);
  items_.insert(place, &sequence);
  tokens_ += sequence.uncomputed();
}

void WaitingQueue::Remove(Sequence& sequence) {
  const auto place = std::ranges::lower_bound(items_, sequence.order, {}, &Sequence::order);
  CHECK(place != items_.end() && *place == &sequence);
  items_.erase(place);
  tokens_ -= sequence.uncomputed();
}

}  // namespace quire
