// What the prefix cache does for requests: what is found, copied, withdrawn and given away.
#include <gtest/gtest.h>

#include "scheduler/scheduler.h"
#include "tests/testing/requests.h"
#include "tests/testing/scheduler_peer.h"
#include "tests/testing/step_driver.h"

namespace quire {
namespace {

StepDriverOptions Options(int32_t num_blocks, bool prefix_cache = true) {
  return {.scheduler = {.context_tokens = 1024, .step_tokens = 256, .prefix_cache = prefix_cache},
          .num_blocks = num_blocks,
          .model = {}};
}

// `shared` tokens that all of these have, then tokens of its own.
Request Prefixed(uint64_t id, int32_t shared, int32_t own, int32_t max_tokens) {
  Request request = MakeRequest(id, own, max_tokens);
  const std::vector<TokenId> prefix = RandomTokens(999, shared);
  request.prompt.insert(request.prompt.begin(), prefix.begin(), prefix.end());
  request.prompt[static_cast<size_t>(shared)] = TokenId{256 + static_cast<int32_t>(id)};
  return request;
}

std::vector<TokenId> Alone(const Request& request) {
  StepDriver driver(Options(16, false));
  EXPECT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
  return driver.output(static_cast<uint64_t>(request.id)).tokens;
}

void Serve(StepDriver& driver, const Request& request) {
  ASSERT_TRUE(driver.scheduler().Add(request).ok());
  driver.RunUntilIdle();
}

TEST(SchedulerPrefix, ALaterPromptComputesOnlyItsOwnTokens) {
  StepDriver driver(Options(16));
  Serve(driver, Prefixed(1, 128, 30, 4));
  const Request second = Prefixed(2, 128, 40, 4);
  ASSERT_TRUE(driver.scheduler().Add(second).ok());
  EXPECT_EQ(driver.Step(), "40 tokens\n2.0: 128 + 40, blocks 0 1 3, draws\nadmitted 2.0\n");
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(2).tokens, Alone(second));
  EXPECT_EQ(driver.output(1).cached_prompt_tokens, 0);
  EXPECT_EQ(driver.output(2).cached_prompt_tokens, 128);
  const SchedulerStats stats = driver.scheduler().Stats();
  EXPECT_EQ(stats.prefix_query_tokens, 158 + 168);
  EXPECT_EQ(stats.prefix_hit_tokens, 128);
  EXPECT_EQ(stats.prefill_tokens, 158 + 40);
  EXPECT_EQ(stats.blocks_used, 0);
  EXPECT_EQ(stats.blocks_cached, 4);
  EXPECT_EQ(stats.blocks_free, 12);
}

TEST(SchedulerPrefix, AStepLooksAWaitingPromptUpOnce) {
  StepDriver driver(Options(5));
  const PrefixCache& cache = SchedulerTestPeer::Get(driver.scheduler()).cache;
  ASSERT_TRUE(driver.scheduler().Add(Prefixed(1, 128, 30, 40)).ok());
  driver.Step();
  EXPECT_EQ(cache.stats().lookups, 1);
  const Request longer = Prefixed(2, 128, 180, 4);  // no room beside it
  ASSERT_TRUE(driver.scheduler().Add(longer).ok());
  driver.Step();
  EXPECT_EQ(cache.stats().lookups, 2);
  driver.Step();
  EXPECT_EQ(cache.stats().lookups, 3);
  EXPECT_EQ(driver.scheduler().Stats().running, 1);
}

TEST(SchedulerPrefix, PartOfABlockIsCopied) {
  StepDriver driver(Options(16));
  Serve(driver, Prefixed(1, 100, 10, 4));
  const Request second = Prefixed(2, 100, 10, 4);
  ASSERT_TRUE(driver.scheduler().Add(second).ok());
  EXPECT_EQ(driver.Step(),
            "10 tokens\n2.0: 100 + 10, blocks 0 2, draws\ncopy 36 tokens of block 1 to 2\n"
            "admitted 2.0\n");
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(2).tokens, Alone(second));
  EXPECT_EQ(driver.output(2).cached_prompt_tokens, 100);
}

TEST(SchedulerPrefix, AFullHitLeavesOneTokenToCompute) {
  for (const int32_t prompt : {1, 63, 64, 65, 128, 130}) {
    StepDriver driver(Options(16));
    Request first = MakeRequest(1, prompt, 4), second = first;
    second.id = RequestId{2};
    Serve(driver, first);
    Serve(driver, second);
    EXPECT_EQ(driver.output(2).cached_prompt_tokens, prompt - 1);
    EXPECT_EQ(driver.output(2).tokens, driver.output(1).tokens);
    EXPECT_EQ(driver.scheduler().Stats().prefill_tokens, prompt + 1);
  }
}

TEST(SchedulerPrefix, AnAnswerIsAPrefixOfTheNextTurn) {
  StepDriver driver(Options(16));
  const Request first = MakeRequest(1, 50, 30);
  Serve(driver, first);
  Request next = MakeRequest(2, 1, 5);
  next.prompt = first.prompt;
  const std::vector<TokenId>& answer = driver.output(1).tokens;
  next.prompt.insert(next.prompt.end(), answer.begin(), answer.end());
  for (int32_t i = 0; i < 5; ++i) next.prompt.push_back(TokenId{i});
  Serve(driver, next);
  EXPECT_EQ(driver.output(2).cached_prompt_tokens, 79) << "all but the token that was not computed";
  EXPECT_EQ(driver.output(2).tokens, Alone(next));
}

TEST(SchedulerPrefix, WhatAStepComputesIsFindableAfterItsCommitOnly) {
  StepDriver driver(Options(16));
  ASSERT_TRUE(driver.scheduler().Add(Prefixed(1, 128, 30, 4)).ok());
  const PrefixIndex& index = SchedulerTestPeer::Get(driver.scheduler()).cache.index();
  driver.Begin(MonotonicTime{1});
  EXPECT_EQ(index.size(), 0);
  driver.End();
  EXPECT_EQ(index.size(), 2) << "the full blocks; the tail follows when it ends";
  driver.RunUntilIdle();
  EXPECT_EQ(index.size(), 3);
}

TEST(SchedulerPrefix, AnotherDomainOrPolicyFindsNothing) {
  StepDriver driver(Options(16));
  Serve(driver, Prefixed(1, 128, 30, 4));
  Request other = Prefixed(2, 128, 40, 4);
  other.cache_domain = {.hi = 0, .lo = 1};
  Serve(driver, other);
  EXPECT_EQ(driver.output(2).cached_prompt_tokens, 0);
  other.id = RequestId{3};
  Serve(driver, other);
  EXPECT_EQ(driver.output(3).cached_prompt_tokens, 167);
}

TEST(SchedulerPrefix, ABypassNeitherReadsNorLeavesAnything) {
  StepDriver driver(Options(16));
  Request secret = Prefixed(1, 128, 30, 4);
  secret.cache_bypass = true;
  Serve(driver, secret);
  EXPECT_EQ(driver.scheduler().Stats().blocks_cached, 0);
  Serve(driver, Prefixed(2, 128, 30, 4));
  EXPECT_EQ(driver.output(2).cached_prompt_tokens, 0);
  secret.id = RequestId{3};
  Serve(driver, secret);
  EXPECT_EQ(driver.output(3).cached_prompt_tokens, 0);
  EXPECT_EQ(driver.scheduler().Stats().prefix_query_tokens, 158);
}

TEST(SchedulerPrefix, OffMeansNothingIsKept) {
  StepDriver driver(Options(16, false));
  Serve(driver, Prefixed(1, 128, 30, 4));
  Serve(driver, Prefixed(2, 128, 30, 4));
  const SchedulerStats stats = driver.scheduler().Stats();
  EXPECT_EQ(stats.prefix_query_tokens, 0);
  EXPECT_EQ(stats.blocks_free, 16);
  EXPECT_EQ(stats.prefill_tokens, 2 * 158);
}

TEST(SchedulerPrefix, TheLeastRecentlyUsedIsGivenAwayFirst) {
  StepDriver driver(Options(6));
  Serve(driver, MakeRequest(1, 100, 4));  // two blocks each
  Serve(driver, MakeRequest(2, 100, 4));
  Serve(driver, MakeRequest(3, 100, 4));
  Request again = MakeRequest(1, 100, 4);
  again.id = RequestId{4};
  Serve(driver, again);
  EXPECT_EQ(driver.output(4).cached_prompt_tokens, 99);
  EXPECT_EQ(driver.scheduler().Stats().block_evictions, 1) << "the tail of 2, for the copy";
  Request second = MakeRequest(2, 100, 4), third = MakeRequest(3, 100, 4);
  second.id = RequestId{5};
  third.id = RequestId{6};
  Serve(driver, third);
  EXPECT_EQ(driver.output(6).cached_prompt_tokens, 99);
  Serve(driver, second);
  EXPECT_EQ(driver.output(5).cached_prompt_tokens, 64) << "its beginning outlives its tail";
}

TEST(SchedulerPrefix, APreemptedSequenceFindsItsOwnBlocksAgain) {
  StepDriver driver(Options(5));
  const Request first = MakeRequest(1, 62, 80), second = MakeRequest(2, 100, 60);
  ASSERT_TRUE(driver.scheduler().Add(first).ok());
  ASSERT_TRUE(driver.scheduler().Add(second).ok());
  for (int i = 0; i < 20; ++i) driver.Step();
  driver.scheduler().SetPaused(RequestId{2}, true);
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(3, 70, 2)).ok());  // takes the paused one's blocks
  for (int i = 0; i < 4; ++i) driver.Step();
  driver.scheduler().SetPaused(RequestId{2}, false);
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(2).preemptions, 1);
  EXPECT_EQ(driver.output(2).tokens, Alone(second));
  EXPECT_EQ(driver.output(2).cached_prompt_tokens, 0) << "of the first admission";
  EXPECT_LT(driver.scheduler().Stats().recompute_tokens, 64);
}

TEST(SchedulerPrefix, BlocksOfAFailedSequenceAreWithdrawn) {
  StepDriverOptions options = Options(16);
  int32_t failures = 1;
  options.model.nan_row = [&](const FakeRow& row) { return row.position == 140 && failures-- > 0; };
  StepDriver driver(options);
  Serve(driver, Prefixed(1, 128, 5, 40));
  ASSERT_EQ(driver.output(1).finish, FinishReason::kError);
  EXPECT_EQ(driver.scheduler().Stats().blocks_cached, 0);
  Serve(driver, Prefixed(2, 128, 5, 40));
  EXPECT_EQ(driver.output(2).cached_prompt_tokens, 0);
  EXPECT_EQ(driver.output(2).finish, FinishReason::kLength);
}

TEST(SchedulerPrefix, EqualPromptsOfOneStepEndUpInTheSameBlocks) {
  StepDriverOptions options = Options(16);
  options.scheduler.step_tokens = 512;
  StepDriver driver(options);
  const Request first = Prefixed(1, 192, 3, 40), second = Prefixed(2, 192, 9, 40);
  ASSERT_TRUE(driver.scheduler().Add(first).ok());
  driver.Step();
  ASSERT_TRUE(driver.scheduler().Add(second).ok());
  driver.Step();
  const auto table = [&](uint64_t id) {
    const std::span<const BlockId> ids =
        SchedulerTestPeer::Find(driver.scheduler(), {RequestId{id}, 0})->blocks.ids();
    return std::vector<BlockId>(ids.begin(), ids.begin() + 3);
  };
  EXPECT_EQ(table(1), table(2));
  EXPECT_EQ(driver.scheduler().Stats().blocks_used, 5);
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(1).tokens, Alone(first));
  EXPECT_EQ(driver.output(2).tokens, Alone(second));
}

TEST(SchedulerPrefix, OutputsAreTheSameWithAndWithoutItAtEveryLength) {
  for (const int32_t shared : {1, 62, 63, 64, 65, 127, 128, 150}) {
    const auto make = [&](uint64_t id) {
      return Prefixed(id, shared, 1 + 17 * static_cast<int32_t>(id % 3), 70);
    };
    StepDriver driver(Options(7));
    for (uint64_t id = 1; id <= 5; ++id) {
      ASSERT_TRUE(driver.scheduler().Add(make(id)).ok());
      driver.Step();
      driver.Step();
    }
    driver.RunUntilIdle();
    for (uint64_t id = 1; id <= 5; ++id) {
      EXPECT_EQ(driver.output(id).tokens, Alone(make(id)))
          << "request " << id << " of " << shared << " shared tokens";
    }
  }
}

}  // namespace
}  // namespace quire
