// Sequences that hold blocks, in order of rank (Sequence::Outranks); paused ones included. Does not
// own them. Engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/sequence.h"

namespace quire {

class RunningSet {
 public:
  explicit RunningSet(size_t reserve) { items_.reserve(reserve); }

  std::span<Sequence* const> items() const { return items_; }  // highest rank first
  void Insert(Sequence& sequence);
  void Remove(Sequence& sequence);
  int32_t num_active() const;  // places of those that are not paused
  // The paused one of lowest rank; nullptr if none is paused.
  Sequence* LatestPaused() const;
  // Whom to preempt so that the active `sequence` can go on: the paused one of lowest rank, else
  // the one of lowest rank below `sequence` that is not pinned. The first active one may take even
  // from those: it must advance. nullptr if there is nobody.
  Sequence* VictimFor(const Sequence& sequence) const;

 private:
  std::vector<Sequence*> items_;
};

}  // namespace quire
