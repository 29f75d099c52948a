#include "scheduler/capacity.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace quire {
namespace {

TEST(Capacity, LeavesRoomForOneToken) {
  const CapacityLimits limits{.context_tokens = 100, .num_blocks = 10};
  EXPECT_EQ(CapacityOf(99, limits).verdict, CapacityVerdict::kFits);
  EXPECT_EQ(CapacityOf(99, limits).max_new_tokens, 1);
  EXPECT_EQ(CapacityOf(100, limits).verdict, CapacityVerdict::kPromptBeyondContext);
  EXPECT_EQ(CapacityOf(100, limits).limit_tokens, 100);
  EXPECT_EQ(CapacityOf(1, limits).max_new_tokens, 99);
  EXPECT_FALSE(CapacityOf(1, limits).pool_bound);
}

TEST(Capacity, NamesThePoolWhenItIsTheSmaller) {
  const CapacityLimits limits{.context_tokens = 1000, .num_blocks = 2};
  EXPECT_EQ(CapacityOf(127, limits).verdict, CapacityVerdict::kFits);
  EXPECT_TRUE(CapacityOf(127, limits).pool_bound);
  EXPECT_EQ(CapacityOf(128, limits).verdict, CapacityVerdict::kPromptBeyondPool);
  EXPECT_EQ(CapacityOf(128, limits).limit_tokens, 128);
}

TEST(Capacity, AnswersForAbsurdSizes) {
  const CapacityLimits limits{.context_tokens = INT32_MAX, .num_blocks = INT32_MAX};
  EXPECT_EQ(CapacityOf(INT64_MAX, limits).verdict, CapacityVerdict::kPromptBeyondContext);
  EXPECT_EQ(CapacityOf(1, limits).max_new_tokens, INT32_MAX - 1);
}

}  // namespace
}  // namespace quire
