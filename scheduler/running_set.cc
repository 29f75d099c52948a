#include "scheduler/running_set.h"

#include <algorithm>

#include "absl/log/check.h"

namespace quire {
namespace {

bool Above(const Sequence* a, const Sequence* b) { return a->Outranks(*b); }

}  // namespace

void RunningSet::Insert(Sequence& sequence) {
  items_.insert(std::ranges::lower_bound(items_, &sequence, Above), &sequence);
  sequence.running = true;
}

void RunningSet::Remove(Sequence& sequence) {
  const auto place = std::ranges::lower_bound(items_, &sequence, Above);
  CHECK(place != items_.end() && *place == &sequence);
  items_.erase(place);
  sequence.running = false;
}

int32_t RunningSet::num_active() const {
  int32_t places = 0;
  for (const Sequence* sequence : items_) places += sequence->paused ? 0 : sequence->forks.places;
  return places;
}

Sequence* RunningSet::LatestPaused() const {
  for (size_t i = items_.size(); i-- > 0;) {
    if (items_[i]->paused) return items_[i];
  }
  return nullptr;
}

Sequence* RunningSet::VictimFor(const Sequence& sequence) const {
  if (Sequence* paused = LatestPaused()) return paused;
  Sequence* pinned = nullptr;
  for (size_t i = items_.size(); i-- > 0 && sequence.Outranks(*items_[i]);) {
    if (!items_[i]->setbacks.pinned) return items_[i];
    if (pinned == nullptr) pinned = items_[i];
  }
  const auto first = std::ranges::find(items_, false, &Sequence::paused);
  return first != items_.end() && *first == &sequence ? pinned : nullptr;
}

}  // namespace quire
