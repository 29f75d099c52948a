// Several outputs of one request: one prompt, shared blocks, a copy on the first write.
#include <gtest/gtest.h>

#include "scheduler/scheduler.h"
#include "tests/testing/requests.h"
#include "tests/testing/scheduler_peer.h"
#include "tests/testing/step_driver.h"

namespace quire {
namespace {

StepDriverOptions Options(int32_t num_blocks, int32_t max_running = 8) {
  return {.scheduler = {.context_tokens = 1024, .step_tokens = 256, .max_running = max_running},
          .num_blocks = num_blocks,
          .model = {}};
}

Request Fork(uint64_t id, int32_t prompt, int32_t max_tokens, int32_t n) {
  Request request = MakeRequest(id, prompt, max_tokens);
  request.num_sequences = n;
  request.sampling.temperature = 1;
  return request;
}

// Output `index` depends on the request and its index alone.
void ExpectOutputs(const StepDriver& driver, const Request& request) {
  Request most = request;
  most.num_sequences = 9;
  StepDriver alone(Options(64, 9));
  ASSERT_TRUE(alone.scheduler().Add(most).ok());
  alone.RunUntilIdle();
  const auto id = static_cast<uint64_t>(request.id);
  for (int32_t i = 0; i < request.num_sequences; ++i) {
    EXPECT_EQ(driver.output(id, i).tokens, alone.output(id, i).tokens) << "output " << i;
    EXPECT_EQ(driver.output(id, i).finishes, 1);
  }
}

TEST(SchedulerFork, ComputesThePromptOnceAndCopiesTheTailOnFirstWrite) {
  StepDriver driver(Options(16));
  const Request request = Fork(1, 70, 6, 3);
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  EXPECT_EQ(driver.Step(), "70 tokens\n1.0: 0 + 70, blocks 0 1, draws 3\nadmitted 1.0 1.1 1.2\n");
  EXPECT_EQ(driver.scheduler().Stats().blocks_used, 2);
  EXPECT_EQ(driver.scheduler().Stats().running, 3);
  EXPECT_EQ(driver.Step(),
            "3 tokens\n1.0: 70 + 1, blocks 0 2, draws\n1.1: 70 + 1, blocks 0 3, draws\n"
            "1.2: 70 + 1, blocks 0 1, draws\n"
            "copy 6 tokens of block 1 to 2\ncopy 6 tokens of block 1 to 3\n");
  EXPECT_EQ(driver.scheduler().Stats().blocks_used, 4);
  driver.RunUntilIdle();
  ExpectOutputs(driver, request);
  EXPECT_NE(driver.output(1, 0).tokens, driver.output(1, 1).tokens);
  EXPECT_EQ(driver.scheduler().Stats().prefill_tokens, 70);
  EXPECT_EQ(driver.scheduler().Stats().sequences_finished, 3);
}

TEST(SchedulerFork, APromptOfWholeBlocksNeedsNoCopy) {
  StepDriver driver(Options(16));
  const Request request = Fork(1, 128, 6, 2);
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.Step();
  EXPECT_EQ(driver.Step(),
            "2 tokens\n1.0: 128 + 1, blocks 0 1 2, draws\n1.1: 128 + 1, blocks 0 1 3, draws\n");
  driver.RunUntilIdle();
  ExpectOutputs(driver, request);
}

TEST(SchedulerFork, WaitsAndRunsAsManySequencesAsItHasOutputs) {
  StepDriverOptions options = Options(16, 4);
  options.scheduler.max_waiting = 5;
  StepDriver driver(options);
  ASSERT_TRUE(driver.scheduler().Add(Fork(1, 20, 9, 3)).ok());
  EXPECT_EQ(driver.scheduler().Stats().waiting, 3);
  EXPECT_FALSE(driver.scheduler().Add(Fork(2, 20, 9, 3)).ok()) << "three and three are six";
  ASSERT_TRUE(driver.scheduler().Add(Fork(3, 20, 9, 2)).ok());
  EXPECT_EQ(driver.Step(),
            "40 tokens\n1.0: 0 + 20, blocks 0, draws 3\n3.0: 0 + 20, blocks 1, draws\n"
            "admitted 1.0 1.1 1.2 3.0\n");
  EXPECT_EQ(driver.scheduler().Stats().running, 4);
  EXPECT_EQ(driver.scheduler().Stats().waiting, 1) << "the second output of 3";
  driver.RunUntilIdle();
  ExpectOutputs(driver, Fork(1, 20, 9, 3));
  ExpectOutputs(driver, Fork(3, 20, 9, 2));
}

TEST(SchedulerFork, MoreOutputsThanPlacesFollowOneAfterTheOther) {
  StepDriver driver(Options(16, 2));
  const Request request = Fork(1, 100, 5, 7);
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
  ExpectOutputs(driver, request);
  EXPECT_EQ(driver.scheduler().Stats().prefill_tokens, 100) << "the rest is found, or recomputed";
}

TEST(SchedulerFork, AnOlderRequestTakesOutputsOneByOne) {
  int64_t preemptions = 0;
  for (const int32_t blocks : {4, 5, 6}) {
    StepDriver driver(Options(blocks));
    ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 10, 230)).ok());
    const Request request = Fork(1, 60, 50, 4);
    ASSERT_TRUE(driver.scheduler().Add(request).ok());
    driver.RunUntilIdle();
    ExpectOutputs(driver, request);
    preemptions += driver.scheduler().Stats().preemptions;
  }
  EXPECT_GT(preemptions, 0);
}

TEST(SchedulerFork, NoMoreOutputsRunAtOnceThanThePoolHoldsToTheirEnd) {
  StepDriver driver(Options(4));
  const Request request = Fork(1, 100, 60, 5);  // three blocks: one shared, two of its own
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.Step();
  EXPECT_EQ(driver.scheduler().Stats().running, 1);
  driver.RunUntilIdle();
  ExpectOutputs(driver, request);
}

TEST(SchedulerFork, TheLastOutputLeftWritesInPlaceWhenThereIsNoBlockToCopyTo) {
  StepDriver driver(Options(2));
  const Request request = Fork(7, 65, 2, 3);
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
  ExpectOutputs(driver, request);
}

TEST(SchedulerFork, IsPreemptedAsOneBeforeItForks) {
  StepDriverOptions options = Options(4);
  options.scheduler.step_tokens = 64;
  StepDriver driver(options);
  const Request request = Fork(2, 120, 5, 2);
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 60, 70)).ok());
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.Step();
  driver.Step();
  driver.scheduler().SetPaused(RequestId{2}, true);  // in the middle of its prompt
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(3, 130, 3)).ok());
  for (int i = 0; i < 3; ++i) driver.Step();
  EXPECT_EQ(driver.scheduler().Stats().preemptions, 1);
  driver.scheduler().SetPaused(RequestId{2}, false);
  driver.RunUntilIdle();
  ExpectOutputs(driver, request);
  EXPECT_EQ(driver.output(2, 1).preemptions, 0) << "it had computed nothing";
}

TEST(SchedulerFork, OutputsThatEndAtTheirFirstTokenEndTheRequest) {
  StepDriver driver(Options(16));
  ASSERT_TRUE(driver.scheduler().Add(Fork(1, 70, 1, 4)).ok());
  driver.RunUntilIdle();
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(driver.output(1, i).finish, FinishReason::kLength);
    EXPECT_EQ(driver.output(1, i).tokens.size(), 1u);
  }
  EXPECT_EQ(driver.scheduler().Stats().blocks_used, 0);
}

TEST(SchedulerFork, TimeEndsAllOutputsBeforeTheFork) {
  for (const bool started : {false, true}) {
    StepDriverOptions options = Options(16);
    options.scheduler.step_tokens = 32;
    StepDriver driver(options);
    Request request = Fork(1, 70, 9, 3);
    request.deadline = MonotonicTime{100};
    ASSERT_TRUE(driver.scheduler().Add(request).ok());
    if (started) driver.Step(MonotonicTime{1});
    driver.Step(MonotonicTime{100});
    for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(driver.output(1, i).finish, FinishReason::kDeadline);
    EXPECT_EQ(driver.scheduler().Stats().waiting, 0);
    EXPECT_EQ(driver.scheduler().Stats().blocks_used, 0);
  }
}

TEST(SchedulerFork, NonFiniteLogitsOfThePromptEndAllOutputs) {
  StepDriverOptions options = Options(16);
  options.model.nan_row = [](const FakeRow& row) { return row.position == 69; };
  StepDriver driver(options);
  ASSERT_TRUE(driver.scheduler().Add(Fork(1, 70, 9, 3)).ok());
  driver.RunUntilIdle();
  for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(driver.output(1, i).finish, FinishReason::kError);
  EXPECT_EQ(driver.scheduler().Stats().blocks_cached, 0);
}

TEST(SchedulerDefer, EqualPromptsThatComeTogetherComputeTheirPrefixOnce) {
  StepDriverOptions options = Options(32);
  options.scheduler.step_tokens = 150;
  StepDriver driver(options), each(options);
  for (uint64_t id = 1; id <= 4; ++id) {
    Request request = MakeRequest(id, 10, 8);
    const std::vector<TokenId> prefix = RandomTokens(99, 192);
    request.prompt.insert(request.prompt.begin(), prefix.begin(), prefix.end());
    ASSERT_TRUE(driver.scheduler().Add(request).ok());
  }
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(5, 10, 8)).ok());
  EXPECT_EQ(driver.Step(), "150 tokens\n1.0: 0 + 150, blocks 0 1 2\nadmitted 1.0\n");
  EXPECT_EQ(driver.Step(),
            "62 tokens\n1.0: 150 + 52, blocks 0 1 2 3, draws\n5.0: 0 + 10, blocks 4, draws\n"
            "admitted 5.0\ndeferred 2.0 3.0 4.0\n")
      << "whoever shares nothing does not wait";
  driver.Step();
  EXPECT_EQ(driver.scheduler().Stats().running, 5);
  driver.RunUntilIdle();
  EXPECT_EQ(driver.scheduler().Stats().prefill_tokens, 202 + 4 * 10);
  for (uint64_t id = 2; id <= 4; ++id) EXPECT_EQ(driver.output(id).cached_prompt_tokens, 192);
}

TEST(SchedulerDefer, NobodyWaitsForOneThatIsPausedOrBypassesTheCache) {
  for (const bool bypass : {false, true}) {
    StepDriverOptions options = Options(32);
    options.scheduler.step_tokens = 100;
    StepDriver driver(options);
    Request first = MakeRequest(1, 190, 4), second = first;
    first.cache_bypass = bypass;
    second.id = RequestId{2};
    ASSERT_TRUE(driver.scheduler().Add(first).ok());
    driver.Step();
    driver.scheduler().SetPaused(RequestId{1}, !bypass);
    ASSERT_TRUE(driver.scheduler().Add(second).ok());
    driver.Step();
    EXPECT_EQ(driver.scheduler().Stats().waiting, bypass ? 0 : 1) << "the paused one";
    EXPECT_EQ(driver.scheduler().Stats().running, bypass ? 2 : 1);
  }
}

}  // namespace
}  // namespace quire
