// The memory side of a step: blocks for what runs, room for what is admitted, what the prefix cache
// has of it, and whose blocks are taken. Decides no order: who asks first is the step planner's,
// who is a victim the running set's. Engine thread only; what it refers to outlives it.
//
// One rule for all sharing: before a sequence writes into a block that has another holder or can be
// found, it gets a fresh block and a copy of the tokens it needs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/step_batch.h"
#include "scheduler/block_pool.h"
#include "scheduler/prefix_cache.h"
#include "scheduler/running_set.h"
#include "scheduler/waiting_queue.h"

namespace quire {

// kBlocks: one of higher rank grew. kPriority: one of higher priority took its place or blocks.
// kPaused: it could not run, and somebody needed its blocks.
enum class PreemptCause : uint8_t { kBlocks, kPriority, kPaused };

struct BlockPlannerOptions {
  int32_t max_running = 0;      // active sequences, >= 1
  size_t max_live = 0;          // sequences that wait or hold blocks
  int32_t max_preemptions = 0;  // of a sequence that could run; then it is pinned
};

class BlockPlanner {
 public:
  BlockPlanner(const BlockPlannerOptions& options, BlockPool& pool, PrefixCache& cache,
               WaitingQueue& waiting, RunningSet& running);

  void Clear();  // before a step is planned, and when it is over

  // Blocks for up to `tokens` more tokens of a running sequence, of its victims' if it must be;
  // returns for how many tokens there are blocks now.
  int32_t GrowFor(Sequence& sequence, int32_t tokens);
  // Before admissions, and not between them and a GrowFor.
  void BeginAdmission();
  // What the cache has of a waiting sequence. MakeRoomFor, Defers and Start are about the one that
  // was looked up last; nobody may start or grow in between.
  void Look(const Sequence& head);
  // Whether a waiting sequence has a place, and room for all its tokens and one more beside what
  // running ones lack for theirs. Preempts paused sequences for it, with `displace` also active
  // ones of a level below its priority, but nobody unless that suffices.
  bool MakeRoomFor(const Sequence& head, bool displace);
  // Whether the next whole block of a waiting sequence is being computed in this step by another
  // one that begins with the same tokens, so that it will be found in the next; for a bounded
  // number of steps. Behind the last GrowFor.
  bool Defers(Sequence& head);
  // How many outputs of the head's request run at once, at most `places`: no more than the pool can
  // hold to their end.
  int32_t PlacesFor(const Sequence& head, int32_t places) const;
  // Right behind MakeRoomFor, of the head that runs now: what the cache has of it, and blocks for
  // up to `budget` more tokens. Returns how many tokens are left to compute, at most `budget`.
  int32_t Start(Sequence& head, int32_t budget);

  std::span<const SequenceId> preempted() const { return preempted_; }
  std::span<const BlockCopy> copies() const { return copies_; }  // in order
  // Since start, by PreemptCause.
  const std::array<int64_t, 3>& preemptions() const { return preemptions_; }

 private:
  void Preempt(Sequence& victim, PreemptCause cause);
  bool MustCopyTail(const Sequence& sequence) const;
  int32_t Lacking(const Sequence& sequence) const;
  BlockId MatchedBlock(const Sequence& head, size_t index) const;
  int32_t Matched(const Sequence& head) const;
  int32_t Fresh(const Sequence& head) const;
  int32_t Holds(const Sequence& sequence) const;
  bool ChooseVictims(const Sequence& head, bool displace);
  int32_t Leave(Sequence& victim);
  int32_t Revived(const Sequence& head) const;
  void Take(Sequence& sequence, int32_t tokens);

  const BlockPlannerOptions options_;
  BlockPool& pool_;
  PrefixCache& cache_;
  WaitingQueue& waiting_;
  RunningSet& running_;
  int32_t spoken_for_ = 0;  // blocks that running sequences lack for tokens they already have
  uint64_t step_ = 0;       // tells who was admitted in the step being planned
  std::array<int64_t, 3> preemptions_{};
  std::vector<Sequence*> victims_;
  PrefixMatch match_;                  // of the head that was looked up last
  const Sequence* matched_ = nullptr;  // that head, while the match holds
  std::vector<int32_t> leaving_;       // [blocks], how many of victims_ hold it
  std::vector<SequenceId> preempted_;
  std::vector<BlockCopy> copies_;
};

}  // namespace quire
