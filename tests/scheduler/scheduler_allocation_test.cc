// A step allocates nothing: decode, preemption and recompute included. Only Add and the end of a
// request touch the heap.
#include <gtest/gtest.h>

#include "scheduler/batch_builder.h"
#include "scheduler/scheduler.h"
#include "tests/testing/count_allocations.h"
#include "tests/testing/requests.h"

namespace quire {
namespace {

TEST(Scheduler, AStepAllocatesNothing) {
  constexpr RunnerLimits kLimits{.num_blocks = 5,
                                 .vocab_size = 300,
                                 .context_tokens = 320,
                                 .max_rows = 48,
                                 .max_seqs = 4,
                                 .max_logits_rows = 4};
  Scheduler scheduler(
      {.context_tokens = 320, .step_tokens = 48, .max_running = 3, .target_itl_ns = 1'000'000},
      kLimits.num_blocks);
  BatchBuilder builder(kLimits);
  const auto add = [&](uint64_t id, int32_t priority) {
    Request request = MakeRequest(id, 50, 200);
    request.stop.eos_ids = {TokenId{299}};
    request.stop.min_tokens = 3;
    request.priority = priority;
    request.tenant = static_cast<int32_t>(id);
    ASSERT_TRUE(scheduler.Add(request).ok());
  };
  for (uint64_t id = 1; id <= 4; ++id) add(id, 0);
  std::vector<Sampled> sampled(4);
  std::vector<TokenEvent> events;
  events.reserve(16);
  int64_t steps = 0, allocations = 0;
  while (scheduler.Stats().sequences_finished == 0) {
    events.clear();
    if (steps == 20) add(5, 2);
    const AllocationCounter counter;
    const StepPlan& plan = scheduler.Schedule(MonotonicTime{1});
    ASSERT_GT(plan.num_tokens, 0);
    builder.Build(plan);
    const std::span<const SampleSpec> specs = builder.specs();
    for (size_t i = 0; i < specs.size(); ++i) {
      sampled[i].sequence = specs[i].sequence;
      sampled[i].token = TokenId{7};
    }
    scheduler.ObserveStep(100'000);
    scheduler.Commit(std::span<const Sampled>(sampled).first(specs.size()), events);
    allocations += counter.ours();
    ++steps;
  }
  EXPECT_EQ(allocations, 0);
  EXPECT_GT(scheduler.Stats().preemptions_for_blocks, 0);
  EXPECT_GT(scheduler.Stats().preemptions_for_priority, 0);
  EXPECT_GT(steps, 190);
}

}  // namespace
}  // namespace quire
