#include "scheduler/stop_rules.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

StopRules Rules() {
  return {.max_tokens = 3,
          .min_tokens = 2,
          .eos_ids = {TokenId{7}},
          .stop_ids = {TokenId{8}, TokenId{9}}};
}

TEST(StopRules, EndTokensStop) {
  EXPECT_EQ(FinishAfter(Rules(), TokenId{7}, 1), FinishReason::kStop);
  EXPECT_EQ(FinishAfter(Rules(), TokenId{9}, 1), FinishReason::kStop);
  EXPECT_EQ(FinishAfter(Rules(), TokenId{6}, 1), FinishReason::kNone);
}

TEST(StopRules, TheLengthEndsAtMaxTokens) {
  EXPECT_EQ(FinishAfter(Rules(), TokenId{6}, 2), FinishReason::kNone);
  EXPECT_EQ(FinishAfter(Rules(), TokenId{6}, 3), FinishReason::kLength);
}

TEST(StopRules, AStopAtTheLastTokenIsAStop) {
  EXPECT_EQ(FinishAfter(Rules(), TokenId{7}, 3), FinishReason::kStop);
}

TEST(StopRules, IgnoreEosKeepsStopIds) {
  StopRules rules = Rules();
  rules.ignore_eos = true;
  EXPECT_EQ(FinishAfter(rules, TokenId{7}, 1), FinishReason::kNone);
  EXPECT_EQ(FinishAfter(rules, TokenId{8}, 1), FinishReason::kStop);
}

TEST(StopRules, EndsAreBannedBelowMinTokens) {
  EXPECT_TRUE(EndsAreBanned(Rules(), 0));
  EXPECT_TRUE(EndsAreBanned(Rules(), 1));
  EXPECT_FALSE(EndsAreBanned(Rules(), 2));
  std::vector<TokenId> ends;
  AppendEnds(Rules(), ends);
  EXPECT_EQ(ends, (std::vector<TokenId>{TokenId{7}, TokenId{8}, TokenId{9}}));
}

}  // namespace
}  // namespace quire
