// The memory side of a step: blocks for what runs, room for what is admitted, and whose blocks are
// taken for it. Decides no order: who asks first is the step planner's, who is a victim the running
// set's. Engine thread only; what it refers to outlives it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/block_pool.h"
#include "scheduler/running_set.h"
#include "scheduler/waiting_queue.h"

namespace quire {

class BlockPlanner {
 public:
  BlockPlanner(BlockPool& pool, WaitingQueue& waiting, RunningSet& running);

  void Clear();  // before a step is planned, and when it is over

  // Blocks for up to `tokens` more tokens of a running sequence, of its victims' if it must be;
  // returns for how many tokens there are blocks now.
  int32_t GrowFor(Sequence& sequence, int32_t tokens);
  // Before the first admission of a step, behind the last GrowFor.
  void BeginAdmission();
  // Whether a waiting sequence has room for all its tokens and one more, beside what running ones
  // lack for theirs; takes blocks of paused sequences for it if that suffices.
  bool MakeRoomFor(const Sequence& head);
  // Of a head that has room and runs now: blocks for its first `tokens` tokens.
  void Start(Sequence& head, int32_t tokens);
  // Out of the running set, back to its place in the queue, without blocks.
  void Preempt(Sequence& victim);

  std::span<const SequenceId> preempted() const { return preempted_; }

 private:
  BlockPool& pool_;
  WaitingQueue& waiting_;
  RunningSet& running_;
  int32_t spoken_for_ = 0;  // blocks that running sequences lack for tokens they already have
  std::vector<SequenceId> preempted_;
};

}  // namespace quire
