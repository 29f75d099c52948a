#include "scheduler/step_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace quire {
namespace {

TEST(StepPlan, PrintsEveryFactOfADecision) {
  const std::vector<TokenId> tokens(3);
  const std::vector<BlockId> blocks = {BlockId{4}, BlockId{1}};
  const std::vector<PlannedSeq> seqs = {{.id = {RequestId{7}, 1},
                                         .num_computed = 70,
                                         .tokens = tokens,
                                         .history = {},
                                         .block_table = blocks,
                                         .num_logits = 1},
                                        {.id = {RequestId{8}, 0},
                                         .num_computed = 0,
                                         .tokens = tokens,
                                         .history = {},
                                         .block_table = {}}};
  const std::vector<BlockCopy> copies = {{BlockId{2}, BlockId{3}, 17}};
  const std::vector<SequenceId> admitted = {{RequestId{8}, 0}},
                                preempted = {{RequestId{9}, 0}, {RequestId{9}, 1}};
  const StepPlan plan{.seqs = seqs,
                      .copies = copies,
                      .admitted = admitted,
                      .preempted = preempted,
                      .num_tokens = 6};
  EXPECT_EQ(plan.DebugString(),
            "6 tokens\n"
            "7.1: 70 + 3, blocks 4 1, draws\n"
            "8.0: 0 + 3, blocks \n"
            "copy 17 tokens of block 2 to 3\n"
            "admitted 8.0\n"
            "preempted 9.0 9.1\n");
}

TEST(StepPlan, AnEmptyOneSaysSo) { EXPECT_EQ(StepPlan{}.DebugString(), "0 tokens\n"); }

}  // namespace
}  // namespace quire
