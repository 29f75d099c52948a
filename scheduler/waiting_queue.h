// Sequences without blocks, in arrival order: new ones, and preempted ones back at their old place.
// Bounded in sequences and in tokens for new arrivals; a preempted sequence always finds room. Does
// not own them. Engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/sequence.h"

namespace quire {

class WaitingQueue {
 public:
  explicit WaitingQueue(size_t reserve) { items_.reserve(reserve); }

  std::span<Sequence* const> items() const { return items_; }  // oldest first
  int32_t size() const { return static_cast<int32_t>(items_.size()); }
  int64_t tokens() const { return tokens_; }  // that wait to be computed
  void Insert(Sequence& sequence);            // at its place by order
  void Remove(Sequence& sequence);            // it is in the queue

 private:
  std::vector<Sequence*> items_;
  int64_t tokens_ = 0;
};

}  // namespace quire
