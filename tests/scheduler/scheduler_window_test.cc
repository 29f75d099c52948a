// Sliding windows with sink tokens: bounded memory, absolute positions.
#include <gtest/gtest.h>

#include "scheduler/capacity.h"
#include "scheduler/kv_window.h"
#include "scheduler/scheduler.h"
#include "tests/testing/requests.h"
#include "tests/testing/scheduler_peer.h"
#include "tests/testing/step_driver.h"

namespace quire {
namespace {

StepDriverOptions Options(int32_t num_blocks, int32_t step_tokens = 128, bool prefix_cache = true) {
  return {.scheduler = {.context_tokens = 4096,
                        .step_tokens = step_tokens,
                        .max_running = 8,
                        .prefix_cache = prefix_cache},
          .num_blocks = num_blocks,
          .model = {}};
}

Request Windowed(uint64_t id, int32_t prompt, int32_t max_tokens, const KvPolicy& kv) {
  Request request = MakeRequest(id, prompt, max_tokens);
  request.kv = kv;
  return request;
}

std::vector<TokenId> Alone(const Request& request) {
  StepDriver driver(Options(64, 512, false));
  EXPECT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
  return driver.output(static_cast<uint64_t>(request.id)).tokens;
}

TEST(KvWindow, NamesTheBlocksThatRowsNeed) {
  const KvPolicy kv{.window_tokens = 100, .sink_tokens = 4};
  EXPECT_EQ(SinkBlocks(kv), 1);
  EXPECT_EQ(FirstWindowBlock(kv, 0), 0);
  EXPECT_EQ(FirstWindowBlock(kv, 226), 1) << "a row at 226 sees 127";
  EXPECT_EQ(FirstWindowBlock(kv, 227), 2) << "and one at 227 from 128 on";
  EXPECT_TRUE(NeedsBlock(kv, 0, 227));
  EXPECT_FALSE(NeedsBlock(kv, 1, 227));
  EXPECT_TRUE(NeedsBlock(kv, 2, 227));
  EXPECT_EQ(WindowBlocks(kv), 1 + 3 + 1);
  EXPECT_EQ(BlocksHeld(kv, 64), 1);
  EXPECT_EQ(BlocksHeld(kv, 100'000), 5);
  EXPECT_EQ(BlocksHeld({}, 6400), 100);
  EXPECT_EQ(WindowBlocks({.window_tokens = INT32_MAX, .sink_tokens = 0}), 2 + (1 << 25));
}

TEST(SchedulerWindow, GivesBackWhatTheWindowHasPassed) {
  StepDriver driver(Options(16));
  ASSERT_TRUE(
      driver.scheduler().Add(Windowed(1, 250, 40, {.window_tokens = 64, .sink_tokens = 4})).ok());
  EXPECT_EQ(driver.Step(), "128 tokens\n1.0: 0 + 128, blocks 0 1\nadmitted 1.0\n");
  EXPECT_EQ(driver.Step(), "122 tokens\n1.0: 128 + 122, blocks 0 1 2 3, draws\n");
  EXPECT_EQ(driver.scheduler().Stats().blocks_used, 3) << "1 is passed: the next row sees 187";
  EXPECT_EQ(driver.Step(), "1 tokens\n1.0: 250 + 1, blocks 0 -1 2 3, draws\n");
  for (int i = 0; i < 6; ++i) driver.Step();
  EXPECT_EQ(driver.Step(), "1 tokens\n1.0: 257 + 1, blocks 0 -1 -1 3 4, draws\n");
}

TEST(SchedulerWindow, ALongSequenceFitsASmallPool) {
  const KvPolicy kv{.window_tokens = 100, .sink_tokens = 4};
  for (const int32_t step_tokens : {1, 17, 64, 512}) {
    StepDriver driver(Options(5, step_tokens));
    const Request request = Windowed(1, 700, 300, kv);
    ASSERT_TRUE(driver.scheduler().Add(request).ok());
    driver.RunUntilIdle();
    EXPECT_EQ(driver.output(1).tokens.size(), 300u);
    EXPECT_EQ(driver.output(1).tokens, Alone(request));
  }
}

TEST(SchedulerWindow, CapacityIsTheContextIfTheWindowFits) {
  const CapacityLimits limits{.context_tokens = 1000, .num_blocks = 5};
  const KvPolicy fits{.window_tokens = 100, .sink_tokens = 4}, large{.window_tokens = 300};
  EXPECT_EQ(CapacityOf(900, limits, fits).verdict, CapacityVerdict::kFits);
  EXPECT_EQ(CapacityOf(900, limits, fits).max_new_tokens, 100);
  EXPECT_FALSE(CapacityOf(900, limits, fits).pool_bound);
  EXPECT_EQ(CapacityOf(1000, limits, fits).verdict, CapacityVerdict::kPromptBeyondContext);
  EXPECT_EQ(CapacityOf(900, limits, large).verdict, CapacityVerdict::kPromptBeyondPool);
  EXPECT_EQ(CapacityOf(300, limits, large).max_new_tokens, 20);
}

TEST(SchedulerWindow, AWindowChangesValuesSoItSharesWithItsLikeOnly) {
  StepDriver driver(Options(32));
  const KvPolicy kv{.window_tokens = 64, .sink_tokens = 4};
  Request request = Windowed(1, 300, 4, kv);
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
  for (const auto& [id, policy, cached] :
       {std::tuple(2, KvPolicy{}, 0),
        std::tuple(3, KvPolicy{.window_tokens = 65, .sink_tokens = 4}, 0),
        std::tuple(4, KvPolicy{.window_tokens = 64, .sink_tokens = 5}, 0),
        std::tuple(5, kv, 299)}) {
    request.id = RequestId{static_cast<uint64_t>(id)};
    request.kv = policy;
    ASSERT_TRUE(driver.scheduler().Add(request).ok());
    driver.RunUntilIdle();
    EXPECT_EQ(driver.output(static_cast<uint64_t>(id)).cached_prompt_tokens, cached) << id;
  }
  EXPECT_EQ(driver.output(5).tokens, driver.output(1).tokens);
}

TEST(SchedulerWindow, AHitHoldsOnlyWhatItsWindowNeeds) {
  StepDriver driver(Options(32));
  const KvPolicy kv{.window_tokens = 64, .sink_tokens = 4};
  Request request = Windowed(1, 300, 4, kv);
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
  request.id = RequestId{2};
  request.prompt.push_back(TokenId{7});
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.Step();
  const Sequence* sequence = SchedulerTestPeer::Find(driver.scheduler(), {RequestId{2}, 0});
  EXPECT_EQ(sequence->blocks.size(), 5);
  EXPECT_EQ(sequence->blocks.held(), 3) << "the sinks, and two of the window";
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(2).cached_prompt_tokens, 300);
  EXPECT_EQ(driver.output(2).tokens, Alone(request));
}

TEST(SchedulerWindow, ManyInASmallPoolArePreemptedAndGetTheirTokens) {
  int64_t preemptions = 0;
  for (const int32_t window : {2, 64, 65, 100}) {
    StepDriver driver(Options(9, 70));
    std::vector<Request> requests;
    for (uint64_t id = 1; id <= 5; ++id) {
      KvPolicy kv{.window_tokens = window, .sink_tokens = static_cast<int32_t>(id % 3)};
      if (id == 4) kv = {};
      Request& request =
          requests.emplace_back(Windowed(id, 40 + 50 * static_cast<int32_t>(id), 100, kv));
      request.num_sequences = id == 3 ? 2 : 1;
      ASSERT_TRUE(driver.scheduler().Add(request).ok());
    }
    driver.RunUntilIdle();
    for (const Request& request : requests) {
      const auto id = static_cast<uint64_t>(request.id);
      EXPECT_EQ(driver.output(id).tokens, Alone(request)) << "window " << window << ", " << id;
    }
    preemptions += driver.scheduler().Stats().preemptions;
  }
  EXPECT_GT(preemptions, 0);
}

TEST(SchedulerWindow, RefusesSinksWithoutAWindow) {
  StepDriver driver(Options(9));
  EXPECT_FALSE(driver.scheduler().Add(Windowed(1, 9, 9, {.sink_tokens = 4})).ok());
  EXPECT_FALSE(driver.scheduler().Add(Windowed(1, 9, 9, {.window_tokens = -1})).ok());
}

TEST(SchedulerWindow, AFailureWithdrawsWhatTheWindowHasPassedToo) {
  StepDriverOptions options = Options(16);
  int failures = 1;
  options.model.nan_row = [&](const FakeRow& row) { return row.position == 260 && failures-- > 0; };
  StepDriver driver(options);
  const Request request = Windowed(1, 250, 40, {.window_tokens = 64, .sink_tokens = 0});
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(1).finish, FinishReason::kError);
  EXPECT_EQ(driver.scheduler().Stats().blocks_cached, 0) << "of a failed request";
  Request again = request;
  again.id = RequestId{2};
  ASSERT_TRUE(driver.scheduler().Add(again).ok());
  driver.RunUntilIdle();
  EXPECT_EQ(driver.scheduler().Stats().prefix_hit_tokens, 0);
  EXPECT_EQ(driver.output(2).tokens, Alone(request));
}

}  // namespace
}  // namespace quire
