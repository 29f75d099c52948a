// The engine's loop body on the production scheduler and batch builder with a fake model: what
// scheduler and property tests drive. Checks invariants and poisons freed blocks after each step,
// and records what each sequence received.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/batch_builder.h"
#include "scheduler/scheduler.h"
#include "tests/testing/fake_model_runner.h"

namespace quire {

struct StepDriverOptions {
  SchedulerOptions scheduler{.context_tokens = 1024};
  int32_t num_blocks = 16;
  FakeModelOptions model;  // its limits are set from the above
};

struct Output {
  std::vector<TokenId> tokens;  // of events, the last one included
  FinishReason finish = FinishReason::kNone;
  SampleOutcome outcome = SampleOutcome::kToken;
  int32_t preemptions = 0, cached_prompt_tokens = 0, finishes = 0, events_after_finish = 0;
  MonotonicTime first_scheduled{};
};

class StepDriver {
 public:
  explicit StepDriver(StepDriverOptions options);

  // One step; returns the text of its plan.
  std::string Step(MonotonicTime now = MonotonicTime{1});
  // Two halves of it, for what happens between Schedule and Commit.
  std::string Begin(MonotonicTime now);
  void End();
  // Steps until nothing has work; CHECK-fails after max_steps.
  void RunUntilIdle(int32_t max_steps = 100'000, MonotonicTime now = MonotonicTime{1});

  Scheduler& scheduler() { return scheduler_; }
  FakeModelRunner& runner() { return runner_; }
  const StepPlan& plan() const { return *plan_; }  // between Begin and End
  const std::map<SequenceId, Output>& outputs() const { return outputs_; }
  const Output& output(uint64_t request, int32_t index = 0) const;

 private:
  StepDriverOptions options_;
  Scheduler scheduler_;
  FakeModelRunner runner_;
  BatchBuilder builder_;
  const StepPlan* plan_ = nullptr;
  std::vector<Sampled> sampled_;
  std::vector<TokenEvent> events_;
  std::map<SequenceId, Output> outputs_;
};

}  // namespace quire
