// Who runs in a step, and with how many tokens.
#include "scheduler/scheduler.h"

#include <gtest/gtest.h>

#include "runtime/base/error_info.h"
#include "tests/testing/requests.h"
#include "tests/testing/step_driver.h"

namespace quire {
namespace {

StepDriverOptions Options(int32_t num_blocks, int32_t step_tokens = 128, int32_t max_running = 64) {
  return {
      .scheduler = {.context_tokens = 1024, .step_tokens = step_tokens, .max_running = max_running},
      .num_blocks = num_blocks,
      .model = {}};
}

TEST(Scheduler, RunsARequestToItsLength) {
  StepDriver driver(Options(16));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 100, 5)).ok());
  EXPECT_EQ(driver.Step(), "100 tokens\n1.0: 0 + 100, blocks 0 1, draws\nadmitted 1.0\n");
  EXPECT_EQ(driver.Step(), "1 tokens\n1.0: 100 + 1, blocks 0 1, draws\n");
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(1).tokens.size(), 5u);
  EXPECT_EQ(driver.output(1).finish, FinishReason::kLength);
  EXPECT_EQ(driver.scheduler().Stats().blocks_used, 0);
}

TEST(Scheduler, MixesDecodeAndChunksOfPromptsInOneBudget) {
  StepDriver driver(Options(16, 10));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 3, 50)).ok());
  EXPECT_EQ(driver.Step(), "3 tokens\n1.0: 0 + 3, blocks 0, draws\nadmitted 1.0\n");
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 16, 50)).ok());
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(3, 5, 50)).ok());
  EXPECT_EQ(driver.Step(),
            "10 tokens\n1.0: 3 + 1, blocks 0, draws\n2.0: 0 + 9, blocks 1\nadmitted 2.0\n");
  EXPECT_EQ(driver.Step(),
            "10 tokens\n1.0: 4 + 1, blocks 0, draws\n2.0: 9 + 7, blocks 1, draws\n3.0: 0 + 2, "
            "blocks 2\nadmitted 3.0\n");
  EXPECT_EQ(driver.Step(),
            "5 tokens\n1.0: 5 + 1, blocks 0, draws\n2.0: 16 + 1, blocks 1, draws\n3.0: 2 + 3, "
            "blocks 2, draws\n");
}

TEST(Scheduler, PutsOneRowSequencesFirst) {
  StepDriver driver(Options(16, 6));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 5, 3)).ok());
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 8, 3)).ok());
  EXPECT_EQ(driver.Step(),
            "6 tokens\n2.0: 0 + 1, blocks 1\n1.0: 0 + 5, blocks 0, draws\nadmitted 1.0 2.0\n");
}

TEST(Scheduler, AdmitsFirstComeFirstServedUpToMaxRunning) {
  StepDriver driver(Options(16, 128, 2));
  for (uint64_t id = 1; id <= 3; ++id)
    ASSERT_TRUE(driver.scheduler().Add(MakeRequest(id, 3, 2)).ok());
  EXPECT_EQ(
      driver.Step(),
      "6 tokens\n1.0: 0 + 3, blocks 0, draws\n2.0: 0 + 3, blocks 1, draws\nadmitted 1.0 2.0\n");
  EXPECT_EQ(driver.scheduler().Stats().waiting, 1);
  EXPECT_EQ(driver.Step(), "2 tokens\n1.0: 3 + 1, blocks 0, draws\n2.0: 3 + 1, blocks 1, draws\n");
  EXPECT_EQ(driver.Step(), "3 tokens\n3.0: 0 + 3, blocks 2, draws\nadmitted 3.0\n");
}

TEST(Scheduler, RefusesWhatCanNeverFitWithBothNumbers) {
  StepDriver small(Options(2));
  const absl::Status pool = small.scheduler().Add(MakeRequest(1, 128, 1));
  EXPECT_EQ(pool.code(), absl::StatusCode::kInvalidArgument);
  const ErrorInfo info = GetErrorInfo(pool);
  EXPECT_EQ(info.reason, "KV_POOL_TOO_SMALL");
  EXPECT_EQ(info.metadata, (std::vector<std::pair<std::string, std::string>>{
                               {"needed_blocks", "3"}, {"total_blocks", "2"}}));

  StepDriver large(Options(64));
  const absl::Status context = large.scheduler().Add(MakeRequest(1, 1024, 1));
  EXPECT_EQ(context.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetErrorInfo(context).reason, "PROMPT_TOO_LONG");
  EXPECT_EQ(GetErrorInfo(context).metadata, (std::vector<std::pair<std::string, std::string>>{
                                                {"actual", "1024"}, {"limit", "1023"}}));
  EXPECT_FALSE(large.scheduler().HasWork());
  EXPECT_EQ(large.scheduler().Stats().sequences_started, 0);
}

TEST(Scheduler, BoundsTheQueueInSequencesAndTokens) {
  StepDriverOptions options = Options(16);
  options.scheduler.max_waiting = 2;
  options.scheduler.max_waiting_tokens = 100;
  StepDriver driver(options);
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 60, 1)).ok());
  EXPECT_EQ(GetErrorInfo(driver.scheduler().Add(MakeRequest(2, 41, 1))).reason,
            "QUEUE_TOKENS_FULL");
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(3, 40, 1)).ok());
  const absl::Status full = driver.scheduler().Add(MakeRequest(4, 1, 1));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorInfo(full).reason, "QUEUE_FULL");
  driver.RunUntilIdle();
  EXPECT_TRUE(driver.scheduler().Add(MakeRequest(5, 300, 1)).ok())
      << "an empty queue takes any request that fits";
}

TEST(Scheduler, CutsOutputToTheContextAndToThePool) {
  StepDriver pool(Options(2));
  ASSERT_TRUE(pool.scheduler().Add(MakeRequest(1, 100, 1000)).ok());
  pool.RunUntilIdle();
  EXPECT_EQ(pool.output(1).tokens.size(), 28u);
  EXPECT_EQ(pool.output(1).finish, FinishReason::kLength);
  StepDriver context(Options(64));
  ASSERT_TRUE(context.scheduler().Add(MakeRequest(1, 1000, 1000)).ok());
  context.RunUntilIdle();
  EXPECT_EQ(context.output(1).tokens.size(), 24u);
}

TEST(Scheduler, RunsEveryOutputOfARequest) {
  StepDriver driver(Options(16));
  Request request = MakeRequest(1, 70, 6);
  request.num_sequences = 3;
  request.sampling.temperature = 1;
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
  for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(driver.output(1, i).tokens.size(), 6u);
  EXPECT_NE(driver.output(1, 0).tokens, driver.output(1, 1).tokens);
  EXPECT_EQ(driver.scheduler().Stats().sequences_finished, 3);
}

TEST(Scheduler, CountsRowsByWhatTheyWere) {
  StepDriver driver(Options(16));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 200, 4)).ok());
  driver.RunUntilIdle();
  const SchedulerStats stats = driver.scheduler().Stats();
  EXPECT_EQ(stats.prefill_tokens, 200);
  EXPECT_EQ(stats.decode_tokens, 3);  // the fourth token is drawn, never computed
  EXPECT_EQ(stats.recompute_tokens, 0);
}

TEST(Scheduler, CountsWhatRunningSequencesHaveLeftToComputeBeforeTheyDraw) {
  StepDriver driver(Options(16, 64));
  Scheduler& scheduler = driver.scheduler();
  ASSERT_TRUE(scheduler.Add(MakeRequest(1, 300, 2)).ok());
  EXPECT_EQ(scheduler.Stats().prompt_backlog, 0) << "it waits";
  driver.Step();
  EXPECT_EQ(scheduler.Stats().prompt_backlog, 300 - 64);
  scheduler.SetPaused(RequestId{1}, true);
  ASSERT_TRUE(scheduler.Add(MakeRequest(2, 300, 2)).ok());
  driver.Step();
  EXPECT_EQ(scheduler.Stats().prompt_backlog, 300 - 64) << "of the second; the first is paused";
  scheduler.SetPaused(RequestId{1}, false);
  EXPECT_EQ(driver.Step(), "64 tokens\n1.0: 64 + 64, blocks 0 2\n");
  EXPECT_EQ(scheduler.Stats().prompt_backlog, 300 - 128 + 300 - 64)
      << "the second has no part in this step";
  while (scheduler.Stats().sequences_finished == 0) driver.Step();
  driver.RunUntilIdle();
  EXPECT_EQ(scheduler.Stats().prompt_backlog, 0);
}

TEST(Scheduler, ADecodeLeavesNoBacklog) {
  StepDriver driver(Options(16));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 100, 5)).ok());
  driver.Step();
  EXPECT_EQ(driver.scheduler().Stats().running, 1);
  EXPECT_EQ(driver.scheduler().Stats().prompt_backlog, 0);
}

TEST(SchedulerDeathTest, ChecksItsCallers) {
  StepDriver driver(Options(16));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 3, 4)).ok());
  EXPECT_DEATH(driver.scheduler().Add(MakeRequest(1, 3, 4)).IgnoreError(), "never reused");
  std::vector<TokenEvent> events;
  EXPECT_DEATH(driver.scheduler().Commit({}, events), "without Schedule");
  driver.scheduler().Schedule(MonotonicTime{1});
  EXPECT_DEATH(driver.scheduler().Schedule(MonotonicTime{1}), "without Commit");
  EXPECT_DEATH(driver.scheduler().Commit({}, events), "do not match the plan");
}

}  // namespace
}  // namespace quire
