// How sequences end: stops, aborts, time, failures. In any state, once, with everything given back.
#include <gtest/gtest.h>

#include "scheduler/scheduler.h"
#include "tests/testing/requests.h"
#include "tests/testing/step_driver.h"

namespace quire {
namespace {

constexpr MonotonicTime At(int64_t nanos) { return MonotonicTime{nanos}; }

StepDriverOptions Options(int32_t num_blocks = 16) {
  return {.scheduler = {.context_tokens = 1024, .step_tokens = 64, .max_queue_ns = 1000},
          .num_blocks = num_blocks,
          .model = {}};
}

TEST(SchedulerEnd, AStopIdEndsWithItsToken) {
  StepDriverOptions options = Options();
  options.model.script = std::vector<TokenId>(20, TokenId{42});
  options.model.script[13] = TokenId{7};
  StepDriver driver(options);
  Request request = MakeRequest(1, 10, 50);
  request.stop.stop_ids = {TokenId{7}};
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(1).finish, FinishReason::kStop);
  EXPECT_EQ(driver.output(1).tokens.size(), 5u);
  EXPECT_EQ(driver.output(1).tokens.back(), TokenId{7});
}

TEST(SchedulerEnd, EndsAreNotDrawnBelowMinTokens) {
  StepDriverOptions options = Options();
  options.model.script = std::vector<TokenId>(30, TokenId{256});
  StepDriver driver(options);
  Request request = MakeRequest(1, 10, 50);
  request.stop.eos_ids = {TokenId{256}};
  request.stop.min_tokens = 4;
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(1).tokens.size(), 5u);
  EXPECT_EQ(driver.output(1).tokens.back(), TokenId{256});
  EXPECT_NE(driver.output(1).tokens.front(), TokenId{256});
}

enum class Stage { kQueued, kPrefill, kDecode, kPaused, kBetween, kBetweenQueued };

class AbortTest : public testing::TestWithParam<Stage> {};

INSTANTIATE_TEST_SUITE_P(Stages, AbortTest,
                         testing::Values(Stage::kQueued, Stage::kPrefill, Stage::kDecode,
                                         Stage::kPaused, Stage::kBetween, Stage::kBetweenQueued));

TEST_P(AbortTest, EndsAllOutputsOnceAndFreesEverything) {
  StepDriver driver(Options());
  Scheduler& scheduler = driver.scheduler();
  Request request = MakeRequest(1, 100, 50);
  request.num_sequences = 2;
  ASSERT_TRUE(scheduler.Add(request).ok());
  const Stage stage = GetParam();
  if (stage == Stage::kPrefill) driver.Step();
  if (stage == Stage::kDecode || stage == Stage::kPaused || stage == Stage::kBetween) {
    for (int i = 0; i < 6; ++i) driver.Step();
  }
  if (stage == Stage::kPaused) scheduler.SetPaused(RequestId{1}, true);
  const size_t tokens = driver.output(1).tokens.size();
  const bool between = stage == Stage::kBetween || stage == Stage::kBetweenQueued;
  if (between) driver.Begin(At(1));
  scheduler.Abort(RequestId{1}, FinishReason::kCancelled);
  scheduler.Abort(RequestId{1}, FinishReason::kShutdown);  // the first reason stays
  EXPECT_TRUE(scheduler.HasWork());
  if (between) {
    driver.End();
  } else {
    EXPECT_EQ(driver.Step(), "0 tokens\n");
  }
  for (int32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(driver.output(1, i).finish, FinishReason::kCancelled);
    EXPECT_EQ(driver.output(1, i).finishes, 1);
  }
  EXPECT_EQ(driver.output(1).tokens.size(), tokens);
  EXPECT_EQ(scheduler.Stats().blocks_used, 0);
  EXPECT_EQ(scheduler.Stats().waiting_tokens, 0);
  EXPECT_FALSE(scheduler.HasWork());
  scheduler.Abort(RequestId{1}, FinishReason::kAborted);
  scheduler.SetPaused(RequestId{1}, true);
  EXPECT_EQ(driver.Step(), "0 tokens\n");
  EXPECT_EQ(driver.output(1).finishes, 1);
}

TEST(SchedulerEnd, AnAbortedNeighbourChangesNothing) {
  StepDriver alone(Options()), with(Options());
  ASSERT_TRUE(alone.scheduler().Add(MakeRequest(1, 30, 40)).ok());
  alone.RunUntilIdle();
  ASSERT_TRUE(with.scheduler().Add(MakeRequest(2, 90, 40)).ok());
  ASSERT_TRUE(with.scheduler().Add(MakeRequest(1, 30, 40)).ok());
  for (int i = 0; i < 5; ++i) with.Step();
  with.scheduler().Abort(RequestId{2}, FinishReason::kAborted);
  with.RunUntilIdle();
  EXPECT_EQ(with.output(1).tokens, alone.output(1).tokens);
}

TEST(SchedulerEnd, ADeadlineInTheQueueRunsNoStep) {
  StepDriver driver(Options());
  Request request = MakeRequest(1, 10, 5);
  request.arrival = At(1);
  request.deadline = At(100);
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  EXPECT_EQ(driver.scheduler().NextDeadline(), At(100));
  EXPECT_EQ(driver.Step(At(100)), "0 tokens\n");
  EXPECT_EQ(driver.output(1).finish, FinishReason::kDeadline);
  EXPECT_EQ(driver.output(1).first_scheduled, At(0));
  EXPECT_EQ(driver.scheduler().NextDeadline(), MonotonicTime::kInfinite);
}

TEST(SchedulerEnd, ADeadlineBetweenChunksEndsAPrompt) {
  StepDriver driver(Options());
  Request request = MakeRequest(1, 200, 5);  // four chunks
  request.deadline = At(100);
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.Step(At(1));
  driver.Step(At(99));
  EXPECT_EQ(driver.scheduler().Stats().prefill_tokens, 128);
  EXPECT_EQ(driver.Step(At(100)), "0 tokens\n");
  EXPECT_EQ(driver.output(1).finish, FinishReason::kDeadline);
  EXPECT_EQ(driver.scheduler().Stats().blocks_used, 0);
}

TEST(SchedulerEnd, TimeEndsARunningAndAPausedSequence) {
  for (const bool paused : {false, true}) {
    StepDriver driver(Options());
    Request request = MakeRequest(1, 10, 50);
    request.time_limit = At(100);
    request.deadline = At(200);
    ASSERT_TRUE(driver.scheduler().Add(request).ok());
    driver.Step(At(1));
    driver.scheduler().SetPaused(RequestId{1}, paused);
    driver.Step(At(99));
    EXPECT_EQ(driver.output(1).finish, FinishReason::kNone);
    driver.Step(At(101));
    EXPECT_EQ(driver.output(1).finish, FinishReason::kTimeLimit);
    EXPECT_EQ(driver.output(1).tokens.size(), paused ? 1u : 2u);
    EXPECT_EQ(driver.output(1).first_scheduled, At(1));
    EXPECT_EQ(driver.scheduler().Stats().blocks_used, 0);
  }
}

TEST(SchedulerEnd, QueueAgeEndsWhatNeverStarted) {
  StepDriverOptions options = Options();
  options.scheduler.max_running = 1;
  StepDriver driver(options);
  Request first = MakeRequest(1, 10, 50), second = MakeRequest(2, 10, 50);
  first.arrival = second.arrival = At(1);
  ASSERT_TRUE(driver.scheduler().Add(first).ok());
  ASSERT_TRUE(driver.scheduler().Add(second).ok());
  driver.Step(At(10));
  driver.Step(At(1001));
  EXPECT_EQ(driver.output(1).finish, FinishReason::kNone);
  EXPECT_EQ(driver.output(2).finish, FinishReason::kQueueAge);
}

TEST(SchedulerEnd, QueueAgeSparesAPreemptedSequence) {
  StepDriver driver(Options(2));
  Request first = MakeRequest(1, 60, 60), second = MakeRequest(2, 30, 30);
  ASSERT_TRUE(driver.scheduler().Add(first).ok());
  ASSERT_TRUE(driver.scheduler().Add(second).ok());
  while (driver.scheduler().Stats().preemptions == 0) driver.Step(At(10));
  driver.Step(At(1'000'000));
  EXPECT_EQ(driver.output(2).finish, FinishReason::kNone);
  driver.RunUntilIdle(1000, At(1'000'000));
  EXPECT_EQ(driver.output(2).finish, FinishReason::kLength);
  EXPECT_EQ(driver.output(2).tokens.size(), 30u);
}

TEST(SchedulerEnd, NonFiniteLogitsEndThatSequenceOnly) {
  StepDriverOptions options = Options();
  options.model.nan_row = [](const FakeRow& row) { return row.position == 33; };
  StepDriver driver(options);
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 30, 40)).ok());
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 50, 10)).ok());
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(1).finish, FinishReason::kError);
  EXPECT_EQ(driver.output(1).outcome, SampleOutcome::kNonFinite);
  EXPECT_EQ(driver.output(1).tokens.size(), 4u);
  EXPECT_EQ(driver.output(2).finish, FinishReason::kLength);
  EXPECT_EQ(driver.scheduler().Stats().blocks_used, 0);
}

TEST(SchedulerEnd, DestructionAnywhereGivesEverythingBack) {
  for (int steps = 0; steps < 6; ++steps) {
    StepDriver driver(Options(4));
    for (uint64_t id = 1; id <= 5; ++id)
      ASSERT_TRUE(driver.scheduler().Add(MakeRequest(id, 50, 30)).ok());
    for (int i = 0; i < steps; ++i) driver.Step();
  }
}

}  // namespace
}  // namespace quire
