#include "scheduler/step_budget.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace quire {
namespace {

std::vector<int32_t> Share(const std::vector<int32_t>& uncomputed, int32_t budget,
                           std::vector<int32_t> order = {}) {
  std::vector<int32_t> grants(uncomputed.size());
  if (order.empty()) {
    order.resize(uncomputed.size());
    std::iota(order.begin(), order.end(), 0);
  }
  int32_t sum = 0;
  const int32_t total = ShareBudget(uncomputed, order, budget, grants);
  for (const int32_t grant : grants) sum += grant;
  EXPECT_EQ(total, sum);
  EXPECT_LE(sum, budget);
  return grants;
}

using Grants = std::vector<int32_t>;

TEST(StepBudget, DecodesAllGoBeforePrompts) {
  EXPECT_EQ(Share({1, 50, 1, 1}, 10), (Grants{1, 7, 1, 1}));
}

TEST(StepBudget, PromptsAreServedOldestFirst) {
  EXPECT_EQ(Share({30, 30, 30}, 50), (Grants{30, 20, 0}));
}

TEST(StepBudget, TheOldestAdvancesEvenWhenDecodesWouldTakeAll) {
  EXPECT_EQ(Share({40, 1, 1}, 2), (Grants{1, 1, 0}));
  EXPECT_EQ(Share({40, 1, 1}, 1), (Grants{1, 0, 0}));
}

TEST(StepBudget, ServesInTheOrderGiven) {
  EXPECT_EQ(Share({30, 30, 30}, 50, {2, 0, 1}), (Grants{20, 0, 30}));
  EXPECT_EQ(Share({1, 1, 1}, 2, {2, 1, 0}), (Grants{1, 0, 1}));
}

TEST(StepBudget, TheFirstAdvancesWhateverTheOrder) {
  EXPECT_EQ(Share({30, 90}, 40, {1, 0}), (Grants{1, 39}));
}

TEST(StepBudget, LeavesWhatNobodyNeeds) {
  EXPECT_EQ(Share({1, 2}, 100), (Grants{1, 2}));
  EXPECT_EQ(Share({}, 100), Grants{});
}

}  // namespace
}  // namespace quire
