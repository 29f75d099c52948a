// What the scheduler knows, and who owns what. Private to the room and its tests.
//   LiveRequest  owns its sequences          one per accepted request, until its last finish event
//   Sequence     owns references to blocks   through its BlockTable; all given back when it is
//   retired waiting, running, ended, retired         refer to sequences
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "scheduler/block_pool.h"
#include "scheduler/fair_share.h"
#include "scheduler/prefix_cache.h"
#include "scheduler/running_set.h"
#include "scheduler/scheduler.h"
#include "scheduler/sequence.h"
#include "scheduler/step_pacer.h"
#include "scheduler/step_planner.h"
#include "scheduler/waiting_queue.h"

namespace quire {

struct Scheduler::State {
  State(const SchedulerOptions& options, int32_t num_blocks);

  void End(Sequence& sequence,
           FinishReason reason);  // first reason wins; takes effect at the next step edge
  void Expire(MonotonicTime now);
  void RetireEnded();  // out of the queue and the batch, blocks given back; the finish event comes
                       // with Commit
  void Retire(Sequence& sequence);
  void CommitRows(const StepPlanner::Grant& grant);
  void CommitDraws(Sequence& first, std::span<const Sampled> draws,
                   std::vector<TokenEvent>& events);
  void Fork(Sequence& first);
  TokenEvent CommitDraw(Sequence& sequence, const Sampled& drawn);
  void CloseFinished(
      Sequence& sequence);     // after its finish event; the request goes with its last sequence
  int32_t NumWaiting() const;  // sequences without a place: in the queue, or to be forked
  absl::Status AuditSequence(const Sequence& sequence) const;
  absl::Status AuditFindable(const Sequence& sequence) const;

  const SchedulerOptions options;
  BlockPool pool;
  PrefixCache cache;
  std::unordered_map<RequestId, std::unique_ptr<LiveRequest>> live;
  WaitingQueue waiting;
  RunningSet running;
  StepPacer pacer;
  FairShare shares;
  StepPlanner planner;
  std::vector<Sequence*> ended;    // ending is set, not yet retired
  std::vector<Sequence*> retired;  // finish event to come
  bool step_open = false;          // between Schedule and Commit
  uint64_t next_order = 0;

  int64_t sequences_started = 0, sequences_finished = 0;
  int64_t prefill_tokens = 0, recompute_tokens = 0, decode_tokens = 0;
};

}  // namespace quire
