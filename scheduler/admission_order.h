// The order in which a step looks at waiting sequences: highest effective priority (priority.h)
// first; of equals those that are owed their turn (preempted, or passed too often) by arrival; then
// the tenant that has had least (fair_share.h), then arrival. First come, first served instead if
// so asked. Engine thread only; what it refers to outlives it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/fair_share.h"
#include "scheduler/queue_policy.h"
#include "scheduler/sequence.h"

namespace quire {

class AdmissionOrder {
 public:
  // `most` waiting sequences at once.
  AdmissionOrder(const QueuePolicy& policy, const FairShare& shares, size_t most);

  void Begin(std::span<Sequence* const> waiting, MonotonicTime now);  // paused ones have no turn
  // The next one by the shares as they are at this moment, with its level; nullptr: none is left.
  Sequence* Next();

 private:
  struct Entry {
    Sequence* sequence;
    int32_t level;  // effective priority
    bool owed;
  };
  bool Before(const Entry& a, const Entry& b) const;

  const QueuePolicy& policy_;
  const FairShare& shares_;
  std::vector<Entry> entries_;
};

}  // namespace quire
