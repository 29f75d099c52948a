#include "server/config/resource_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/ids.h"

namespace quire {
namespace {

using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;

ResourceNeeds Needs() {
  return {.weights_bytes = 100 * kMiB,
          .scratch_bytes = 50 * kMiB,
          .kv_block_bytes = 1 * kMiB,
          .context_tokens = 8192,
          .max_context = 0,
          .kv_cache_bytes = 0,
          .limit_bytes = 8 * kGiB,
          .limit_source = "cgroup"};
}

TEST(ResourcePlan, TakesTwoGibibytesWhenThereIsPlenty) {
  const auto plan = PlanResources(Needs());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_blocks, 2048);
  EXPECT_EQ(plan->kv_bytes, 2 * kGiB);
  EXPECT_EQ(plan->total_bytes, 100 * kMiB + 50 * kMiB + 2 * kGiB + kReserveBytes);
  EXPECT_EQ(plan->context_tokens, 8192);
}

TEST(ResourcePlan, TakesWhatTheLimitLeaves) {
  ResourceNeeds needs = Needs();
  needs.limit_bytes = 906 * kMiB;  // 500 MiB beyond the fixed part
  const auto plan = PlanResources(needs);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->num_blocks, 500);
  EXPECT_LE(plan->total_bytes, needs.limit_bytes);
}

TEST(ResourcePlan, NeverLessThanOneContextIfThatFits) {
  ResourceNeeds needs = Needs();
  needs.kv_block_bytes = 30 * kMiB;  // one context is 3.75 GiB, more than 2 GiB
  const auto plan = PlanResources(needs);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->num_blocks, 128);
  needs.limit_bytes = 3 * kGiB;
  const auto small = PlanResources(needs);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(small->num_blocks, 2 * kGiB / needs.kv_block_bytes);
  EXPECT_EQ(small->context_tokens, 8192) << "the pool is a bound of its own";
  EXPECT_EQ(small->effective_context_tokens(), small->num_blocks * kBlockTokens);
}

TEST(ResourcePlan, TakesWhatIsAskedForAndRefusesWhatDoesNotFit) {
  ResourceNeeds needs = Needs();
  needs.kv_cache_bytes = 10 * kMiB + 5;
  const auto plan = PlanResources(needs);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->num_blocks, 10);
  EXPECT_EQ(plan->effective_context_tokens(), 640);

  needs.kv_cache_bytes = 8 * kGiB;
  const auto big = PlanResources(needs);
  EXPECT_EQ(big.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(big.status().message()), HasSubstr("over the limit by 406.0 MiB"));
  EXPECT_THAT(std::string(big.status().message()), HasSubstr("weights 100.0 MiB"));

  needs.kv_cache_bytes = 1;
  EXPECT_THAT(std::string(PlanResources(needs).status().message()),
              HasSubstr("less than one block"));
}

TEST(ResourcePlan, AModelLargerThanTheLimitIsRefusedWithTheArithmetic) {
  ResourceNeeds needs = Needs();
  needs.limit_bytes = 300 * kMiB;
  const auto plan = PlanResources(needs);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("of 300.0 MiB (cgroup)"));
}

TEST(ResourcePlan, ALowerContextNeedsFewerBlocks) {
  ResourceNeeds needs = Needs();
  needs.max_context = 1000;
  const auto plan = PlanResources(needs);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->context_tokens, 1000);
  needs.max_context = 100'000;
  EXPECT_EQ(PlanResources(needs)->context_tokens, 8192);
}

TEST(ResourcePlan, RefusesAContextThatHoldsNoPrompt) {
  ResourceNeeds needs = Needs();
  needs.max_context = 1;
  EXPECT_EQ(PlanResources(needs).status().code(), absl::StatusCode::kFailedPrecondition);
  needs.max_context = 2;
  EXPECT_TRUE(PlanResources(needs).ok());
}

TEST(ResourcePlan, PrintsTheSum) {
  const std::string text = PlanResources(Needs())->text;
  EXPECT_THAT(text, HasSubstr("KV cache 2048.0 MiB (2048 blocks of 64 tokens, 1.0 MiB each)"));
  EXPECT_THAT(text, HasSubstr("= 2454.0 MiB of 8192.0 MiB (cgroup)"));
}

}  // namespace
}  // namespace quire
