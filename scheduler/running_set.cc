#include "scheduler/running_set.h"

#include <algorithm>

#include "absl/log/check.h"

namespace quire {

void RunningSet::Insert(Sequence& sequence) {
  const auto place = std::ranges::lower_bound(items_, sequence.order, {}, &Sequence::order);
  items_.insert(place, &sequence);
  sequence.running = true;
}

void RunningSet::Remove(Sequence& sequence) {
  const auto place = std::ranges::lower_bound(items_, sequence.order, {}, &Sequence::order);
  CHECK(place != items_.end() && *place == &sequence);
  items_.erase(place);
  sequence.running = false;
}

int32_t RunningSet::num_active() const {
  return static_cast<int32_t>(std::ranges::count(items_, false, &Sequence::paused));
}

Sequence* RunningSet::LatestPaused() const {
  for (size_t i = items_.size(); i-- > 0;) {
    if (items_[i]->paused) return items_[i];
  }
  return nullptr;
}

Sequence* RunningSet::VictimFor(const Sequence& sequence) const {
  if (Sequence* paused = LatestPaused()) return paused;
  Sequence* latest = items_.empty() ? nullptr : items_.back();
  return latest != nullptr && latest->order > sequence.order ? latest : nullptr;
}

}  // namespace quire
