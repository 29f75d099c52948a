// Sequences that hold blocks, in arrival order; paused ones included. Does not own them. Engine
// thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/sequence.h"

namespace quire {

class RunningSet {
 public:
  explicit RunningSet(size_t reserve) { items_.reserve(reserve); }

  std::span<Sequence* const> items() const { return items_; }  // oldest first
  void Insert(Sequence& sequence);
  void Remove(Sequence& sequence);
  int32_t num_active() const;  // not paused
  // The latest paused one; nullptr if none is paused.
  Sequence* LatestPaused() const;
  // Whom to preempt so that `sequence` can go on: the latest paused one, else the latest arrival
  // after `sequence`; nullptr if there is neither.
  Sequence* VictimFor(const Sequence& sequence) const;

 private:
  std::vector<Sequence*> items_;
};

}  // namespace quire
