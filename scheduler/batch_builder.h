// Turns the decision of a step (StepPlan) into its data (StepBatch, SampleSpecs) in storage that is
// reused, so a step allocates nothing. Engine thread only. What Build returns is valid until the
// next Build; spans into the plan stay valid until Commit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/sampling/sample_spec.h"
#include "runtime/step_batch.h"
#include "scheduler/step_plan.h"

namespace quire {

class BatchBuilder {
 public:
  explicit BatchBuilder(const RunnerLimits& limits);

  const StepBatch& Build(const StepPlan& plan);  // plan.num_tokens >= 1, within the limits
  // One per draw, in order of the plan; draws of a fork share a logits row; `allowed` is for the
  // constraint store to fill.
  std::span<SampleSpec> specs() { return specs_; }

 private:
  void AddRows(const PlannedSeq& seq);
  void AddSpecs(const PlannedSeq& seq);
  void AddBanned(const StepPlan& plan);

  RunnerLimits limits_;
  int32_t logits_rows_ = 0;
  StepBatch batch_;
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<KvSlot> slots_;
  std::vector<BlockId> block_ids_;
  std::vector<SeqSpan> seqs_;
  std::vector<BlockCopy> copies_;
  std::vector<SampleSpec> specs_;
  std::vector<TokenId> banned_;
};

}  // namespace quire
