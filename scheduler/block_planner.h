// The memory side of a step: blocks for what runs, room for what is admitted, and whose blocks are
// taken for it. Decides no order: who asks first is the step planner's, who is a victim the running
// set's. Engine thread only; what it refers to outlives it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/block_pool.h"
#include "scheduler/running_set.h"
#include "scheduler/waiting_queue.h"

namespace quire {

// kBlocks: one of higher rank grew. kPriority: one of higher priority took its place or blocks.
// kPaused: it could not run, and somebody needed its blocks.
enum class PreemptCause : uint8_t { kBlocks, kPriority, kPaused };

struct BlockPlannerOptions {
  int32_t max_running = 0;      // active sequences, >= 1
  int32_t max_preemptions = 0;  // of a sequence that could run; then it is pinned
};

class BlockPlanner {
 public:
  BlockPlanner(const BlockPlannerOptions& options, BlockPool& pool, WaitingQueue& waiting,
               RunningSet& running);

  void Clear();  // before a step is planned, and when it is over

  // Blocks for up to `tokens` more tokens of a running sequence, of its victims' if it must be;
  // returns for how many tokens there are blocks now.
  int32_t GrowFor(Sequence& sequence, int32_t tokens);
  // Before admissions, and not between them and a GrowFor.
  void BeginAdmission();
  // Whether a waiting sequence has a place, and room for all its tokens and one more beside what
  // running ones lack for theirs. Preempts paused sequences for it, with `displace` also active
  // ones of a level below its priority, but nobody unless that suffices.
  bool MakeRoomFor(const Sequence& head, bool displace);
  // Of a head that has room and runs now: blocks for its first `tokens` tokens.
  void Start(Sequence& head, int32_t tokens);

  std::span<const SequenceId> preempted() const { return preempted_; }
  // Since start, by PreemptCause.
  const std::array<int64_t, 3>& preemptions() const { return preemptions_; }

 private:
  void Preempt(Sequence& victim, PreemptCause cause);
  bool ChooseVictims(const Sequence& head, bool displace);

  const BlockPlannerOptions options_;
  BlockPool& pool_;
  WaitingQueue& waiting_;
  RunningSet& running_;
  int32_t spoken_for_ = 0;  // blocks that running sequences lack for tokens they already have
  uint64_t step_ = 0;       // tells who was admitted in the step being planned
  std::array<int64_t, 3> preemptions_{};
  std::vector<Sequence*> victims_;
  std::vector<SequenceId> preempted_;
};

}  // namespace quire
