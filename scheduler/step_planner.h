// The policy of a step: who gets how many tokens, who is admitted. Moves sequences between the
// queue and the running set; blocks are block_planner.h's; ends nothing. Engine thread only; what
// it refers to outlives it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/clock.h"
#include "scheduler/admission_order.h"
#include "scheduler/block_planner.h"
#include "scheduler/fair_share.h"
#include "scheduler/running_set.h"
#include "scheduler/step_pacer.h"
#include "scheduler/step_plan.h"
#include "scheduler/waiting_queue.h"

namespace quire {

struct PlannerOptions {
  int32_t max_running = 0;  // sequences of a step, >= 1
  size_t max_live = 0;      // sequences that wait or hold blocks
  QueuePolicy queue;
};

struct PlannerLinks {
  BlockPool& pool;
  PrefixCache& cache;
  WaitingQueue& waiting;
  RunningSet& running;
  const StepPacer& pacer;
  FairShare& shares;
};

// What a step with this plan costs depends on it.
StepShape ShapeOf(const StepPlan& plan);

class StepPlanner {
 public:
  StepPlanner(const PlannerOptions& options, const PlannerLinks& links);

  const StepPlan& Plan(MonotonicTime now);  // valid until the next Plan or Clear
  // The sequences of the plan, in its order, with their grants.
  struct Grant {
    Sequence* sequence;
    int32_t tokens;
  };
  std::span<const Grant> grants() const { return grants_; }
  const StepPlan& plan() const { return plan_; }
  const BlockPlanner& blocks() const { return blocks_; }
  void Clear();

 private:
  void Overtake(MonotonicTime now);
  bool AnyMayOvertake() const;
  void GrantRunning(MonotonicTime now);
  void ChooseBudget();
  void OrderByAge(MonotonicTime now);
  void Admit(MonotonicTime now);
  int32_t Start(Sequence& head, int32_t budget, MonotonicTime now);
  bool Defers(Sequence& head);
  bool MayPass(Sequence& head);
  bool AnyPassedEnough() const;
  void WritePlan();

  const PlannerOptions options_;
  WaitingQueue& waiting_;
  RunningSet& running_;
  const StepPacer& pacer_;
  FairShare& shares_;
  BlockPlanner blocks_;
  AdmissionOrder order_;
  int32_t budget_ = 0;  // tokens of this step, >= 1

  // Storage of a step, reused.
  std::vector<Grant> grants_;
  std::vector<Sequence*> candidates_;           // active ones, by rank
  std::vector<int32_t> uncomputed_, granting_;  // of candidates_: see ShareBudget
  std::vector<int32_t> shares_of_step_;
  std::vector<Sequence*> passed_;  // waiting ones that were looked at and did not start
  std::vector<PlannedSeq> planned_;
  std::vector<SequenceId> admitted_, deferred_;
  StepPlan plan_;
};

}  // namespace quire
