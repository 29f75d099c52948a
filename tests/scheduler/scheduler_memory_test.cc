// What happens when blocks run out: preemption, recompute, paused sequences.
#include <gtest/gtest.h>

#include "scheduler/scheduler.h"
#include "tests/testing/requests.h"
#include "tests/testing/step_driver.h"

namespace quire {
namespace {

StepDriverOptions Options(int32_t num_blocks) {
  return {.scheduler = {.context_tokens = 1024, .step_tokens = 128},
          .num_blocks = num_blocks,
          .model = {}};
}

std::vector<TokenId> Alone(const Request& request) {
  StepDriver driver(Options(16));
  EXPECT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
  return driver.output(static_cast<uint64_t>(request.id)).tokens;
}

TEST(SchedulerMemory, PreemptsTheLatestArrivalAndKeepsItsOrder) {
  StepDriver driver(Options(3));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 62, 40)).ok());
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 20, 30)).ok());
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(3, 30, 30)).ok());
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(4, 30, 30)).ok());
  EXPECT_EQ(driver.Step(),
            "112 tokens\n1.0: 0 + 62, blocks 0, draws\n2.0: 0 + 20, blocks 1, draws\n3.0: 0 + 30, "
            "blocks 2, draws\n"
            "admitted 1.0 2.0 3.0\n");
  driver.Step();
  driver.Step();
  EXPECT_EQ(
      driver.Step(),
      "2 tokens\n1.0: 64 + 1, blocks 0 2, draws\n2.0: 22 + 1, blocks 1, draws\npreempted 3.0\n");
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(3).preemptions, 1);
  EXPECT_EQ(driver.output(4).preemptions, 0);
  EXPECT_EQ(driver.output(3).tokens, Alone(MakeRequest(3, 30, 30)));
  EXPECT_EQ(driver.scheduler().Stats().recompute_tokens, 32);
  EXPECT_EQ(driver.scheduler().Stats().preemptions, 1);
}

TEST(SchedulerMemory, AdmitsNothingInAStepThatPreempted) {
  StepDriverOptions options = Options(4);
  options.scheduler.step_tokens = 256;
  StepDriver driver(options);
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 62, 20)).ok());
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 20, 40)).ok());
  ASSERT_TRUE(
      driver.scheduler().Add(MakeRequest(3, 100, 20)).ok());  // two blocks, given up when paused
  driver.Step();
  driver.scheduler().SetPaused(RequestId{3}, true);
  driver.Step();
  driver.Step();
  ASSERT_TRUE(
      driver.scheduler().Add(MakeRequest(4, 10, 20)).ok());  // would fit in the block that is left
  EXPECT_EQ(
      driver.Step(),
      "2 tokens\n1.0: 64 + 1, blocks 0 3, draws\n2.0: 22 + 1, blocks 1, draws\npreempted 3.0\n");
  EXPECT_EQ(driver.Step(),
            "12 tokens\n1.0: 65 + 1, blocks 0 3, draws\n2.0: 23 + 1, blocks 1, draws\n"
            "4.0: 0 + 10, blocks 2, draws\nadmitted 4.0\n");
}

TEST(SchedulerMemory, TheLatestWaitsWithItsBlocksWhenOnlyItLacksOne) {
  StepDriver driver(Options(3));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 70, 30)).ok());  // two blocks from the start
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 60, 40)).ok());
  for (int i = 0; i < 6; ++i) driver.Step();
  EXPECT_EQ(driver.Step(), "1 tokens\n1.0: 75 + 1, blocks 0 1, draws\n");
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(2).preemptions, 0);
  EXPECT_EQ(driver.output(2).tokens, Alone(MakeRequest(2, 60, 40)));
}

TEST(SchedulerMemory, APromptOnceBegunKeepsRoomForItsRest) {
  StepDriver driver(Options(5));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 250, 5)).ok());  // 4 blocks, two steps
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 100, 5)).ok());  // 2 blocks: one too many
  EXPECT_EQ(driver.Step(), "128 tokens\n1.0: 0 + 128, blocks 0 1\nadmitted 1.0\n");
  EXPECT_EQ(driver.Step(), "122 tokens\n1.0: 128 + 122, blocks 0 1 2 3, draws\n");
  driver.RunUntilIdle();
  EXPECT_EQ(driver.scheduler().Stats().preemptions, 0);
}

TEST(SchedulerMemory, APausedSequenceGetsNoTokensAndKeepsItsBlocks) {
  StepDriver driver(Options(8));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 10, 20)).ok());
  driver.Step();
  driver.scheduler().SetPaused(RequestId{1}, true);
  driver.scheduler().SetPaused(RequestId{1}, true);
  EXPECT_EQ(driver.Step(), "0 tokens\n");
  EXPECT_FALSE(driver.scheduler().HasWork());
  const SchedulerStats stats = driver.scheduler().Stats();
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 1);
  EXPECT_EQ(stats.blocks_used, 1);
  driver.scheduler().SetPaused(RequestId{1}, false);
  EXPECT_EQ(driver.Step(), "1 tokens\n1.0: 10 + 1, blocks 0, draws\n");
}

TEST(SchedulerMemory, APausedSequenceIsTheFirstVictimEvenTheOldest) {
  StepDriver driver(Options(3));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 10, 40)).ok());
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 63, 40)).ok());
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(3, 10, 40)).ok());
  driver.Step();
  driver.scheduler().SetPaused(RequestId{1}, true);
  driver.Step();
  EXPECT_EQ(
      driver.Step(),
      "2 tokens\n2.0: 64 + 1, blocks 1 0, draws\n3.0: 11 + 1, blocks 2, draws\npreempted 1.0\n");
  driver.scheduler().SetPaused(RequestId{1}, false);
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(1).tokens, Alone(MakeRequest(1, 10, 40)));
}

TEST(SchedulerMemory, BlocksOfPausedSequencesMakeRoomForTheQueue) {
  StepDriver driver(Options(2));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 70, 20)).ok());
  driver.Step();
  driver.scheduler().SetPaused(RequestId{1}, true);
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 10, 2)).ok());
  EXPECT_EQ(driver.Step(),
            "10 tokens\n2.0: 0 + 10, blocks 1, draws\nadmitted 2.0\npreempted 1.0\n");
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(2).finish, FinishReason::kLength);
  driver.scheduler().SetPaused(RequestId{1}, false);
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(1).tokens, Alone(MakeRequest(1, 70, 20)));
}

TEST(SchedulerMemory, APausedSequenceInTheQueueIsPassed) {
  StepDriver driver(Options(8));
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 10, 2)).ok());
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 10, 2)).ok());
  driver.scheduler().SetPaused(RequestId{1}, true);
  EXPECT_EQ(driver.Step(), "10 tokens\n2.0: 0 + 10, blocks 0, draws\nadmitted 2.0\n");
}

TEST(SchedulerMemory, ResumedSequencesNeverExceedMaxRunning) {
  StepDriverOptions options = Options(8);
  options.scheduler.max_running = 1;
  StepDriver driver(options);
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 10, 8)).ok());
  driver.Step();
  driver.scheduler().SetPaused(RequestId{1}, true);
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 10, 8)).ok());
  driver.Step();
  driver.scheduler().SetPaused(RequestId{1}, false);
  EXPECT_EQ(driver.Step(), "1 tokens\n1.0: 10 + 1, blocks 0, draws\n");
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(2).tokens, Alone(MakeRequest(2, 10, 8)));
}

}  // namespace
}  // namespace quire
