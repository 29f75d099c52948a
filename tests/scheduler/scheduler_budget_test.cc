// The token budget of a step under a target inter-token latency.
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/scheduler.h"
#include "scheduler/step_planner.h"
#include "tests/testing/requests.h"
#include "tests/testing/step_driver.h"

namespace quire {
namespace {

constexpr int64_t kMs = 1'000'000;

StepDriverOptions Options(int64_t target_itl_ns) {
  return {.scheduler = {.context_tokens = 2048,
                        .step_tokens = 128,
                        .max_running = 8,
                        .target_itl_ns = target_itl_ns},
          .num_blocks = 64,
          .model = {}};
}

// A step on a machine that needs 2 ms, and half a millisecond per row; returns its tokens.
int32_t TimedStep(StepDriver& driver) {
  driver.Begin(MonotonicTime{1});
  const int32_t tokens = driver.plan().num_tokens;
  driver.scheduler().ObserveStep(2 * kMs + tokens * kMs / 2);
  driver.End();
  return tokens;
}

TEST(SchedulerBudget, ALongPromptBesideADecodeIsCutToTheTarget) {
  StepDriver driver(Options(20 * kMs));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 200, 200)).ok());
  EXPECT_EQ(TimedStep(driver), 128) << "nobody decodes";
  EXPECT_EQ(TimedStep(driver), 72);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(TimedStep(driver), 1);
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 800, 5)).ok());
  int32_t most = 0, sum = 0;
  while (driver.output(2).tokens.empty()) {
    const int32_t tokens = TimedStep(driver);
    most = std::max(most, tokens);
    sum += tokens - 1;
  }
  EXPECT_EQ(sum, 800);
  EXPECT_LE(most, 36) << "20 ms";
  EXPECT_GE(most, 28);
}

TEST(SchedulerBudget, OutputsDoNotDependOnTheTarget) {
  StepDriver fixed(Options(0)), tight(Options(5 * kMs));
  for (StepDriver* driver : {&fixed, &tight}) {
    for (uint64_t id = 1; id <= 4; ++id) {
      ASSERT_TRUE(
          driver->scheduler().Add(MakeRequest(id, 100 * static_cast<int32_t>(id), 30)).ok());
      TimedStep(*driver);
    }
    while (driver->scheduler().HasWork()) TimedStep(*driver);
  }
  for (uint64_t id = 1; id <= 4; ++id) {
    EXPECT_EQ(fixed.output(id).tokens, tight.output(id).tokens);
  }
}

TEST(SchedulerBudget, RatesFollowWhatWasObserved) {
  StepDriver driver(Options(0));
  EXPECT_EQ(driver.scheduler().Stats().rates.prefill_tokens_per_second, 0);
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 126, 20)).ok());
  while (driver.scheduler().HasWork()) TimedStep(driver);
  const ServiceRates rates = driver.scheduler().Stats().rates;
  EXPECT_NEAR(rates.prefill_tokens_per_second, 126 / 0.065, 1);
  EXPECT_NEAR(rates.steps_per_second, 1 / 0.0025, 1);
}

TEST(SchedulerBudget, TheShapeOfAStepCountsWhatRowsRead) {
  const Request full = MakeRequest(1, 300, 5);
  Request windowed = MakeRequest(2, 300, 5);
  windowed.kv = {.window_tokens = 64, .sink_tokens = 4};
  const auto tokens = [](const Request& request, size_t count) {
    return std::span<const TokenId>(request.prompt).first(count);
  };
  const auto planned = [&](const Request& request, int32_t num_computed, size_t count) {
    PlannedSeq seq;
    seq.num_computed = num_computed;
    seq.tokens = tokens(request, count);
    seq.request = &request;
    return seq;
  };
  const PlannedSeq seqs[] = {planned(full, 200, 1), planned(windowed, 200, 1),
                             planned(windowed, 30, 1), planned(full, 100, 20)};
  StepPlan plan;
  plan.seqs = seqs;
  const StepShape shape = ShapeOf(plan);
  EXPECT_EQ(shape.decode_rows, 3);
  EXPECT_EQ(shape.prefill_rows, 20);
  EXPECT_EQ(shape.kv_tokens, 200 + 68 + 30 + 20 * 110);
}

TEST(SchedulerBudgetDeathTest, ObservesOnlyAStepInProgress) {
  StepDriver driver(Options(0));
  EXPECT_DEATH(driver.scheduler().ObserveStep(1), "without Schedule");
}

}  // namespace
}  // namespace quire
