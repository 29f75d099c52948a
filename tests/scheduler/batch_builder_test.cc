#include "scheduler/batch_builder.h"

#include <gtest/gtest.h>

#include "tests/testing/requests.h"

namespace quire {
namespace {

constexpr RunnerLimits kLimits{.num_blocks = 8,
                               .vocab_size = 300,
                               .context_tokens = 512,
                               .max_rows = 16,
                               .max_seqs = 4,
                               .max_logits_rows = 4};

class BatchBuilderTest : public testing::Test {
 protected:
  // A sequence with `known` tokens of which [computed, computed + rows) are granted.
  PlannedSeq Seq(const Request& request, const std::vector<TokenId>& known, int32_t computed,
                 int32_t rows, const std::vector<BlockId>& table) {
    const std::span<const TokenId> all = known;
    return {.id = {request.id, 0},
            .num_computed = computed,
            .tokens = all.subspan(static_cast<size_t>(computed), static_cast<size_t>(rows)),
            .history = all,
            .block_table = table,
            .num_logits = computed + rows == static_cast<int32_t>(known.size()) ? 1 : 0,
            .num_prompt = static_cast<int32_t>(request.prompt.size()),
            .request = &request};
  }
  BatchBuilder builder_{kLimits};
};

TEST_F(BatchBuilderTest, FlattensRowsTablesAndSlots) {
  const Request a = MakeRequest(1, 64, 9), b = MakeRequest(2, 10, 9);
  const std::vector<TokenId> known_a = RandomTokens(1, 66), known_b = RandomTokens(2, 10);
  const std::vector<BlockId> table_a = {BlockId{5}, BlockId{2}}, table_b = {BlockId{7}};
  const std::vector<PlannedSeq> seqs = {Seq(a, known_a, 65, 1, table_a),
                                        Seq(b, known_b, 4, 3, table_b)};
  const StepBatch& batch = builder_.Build(
      {.seqs = seqs, .copies = {}, .admitted = {}, .preempted = {}, .num_tokens = 4});

  ASSERT_EQ(batch.tokens.size(), 4u);
  EXPECT_EQ(batch.tokens[0], known_a[65]);
  EXPECT_EQ(batch.tokens[3], known_b[6]);
  EXPECT_EQ(batch.positions[0], 65);
  EXPECT_EQ(batch.positions[1], 4);
  EXPECT_EQ(batch.slots[0], KvSlot{2 * 64 + 1});
  EXPECT_EQ(batch.slots[3], KvSlot{7 * 64 + 6});
  ASSERT_EQ(batch.block_ids.size(), 3u);
  EXPECT_EQ(batch.block_ids[2], BlockId{7});
  ASSERT_EQ(batch.seqs.size(), 2u);
  EXPECT_EQ(batch.seqs[1].row_begin, 1);
  EXPECT_EQ(batch.seqs[1].row_count, 3);
  EXPECT_EQ(batch.seqs[1].kv_len, 7);
  EXPECT_EQ(batch.seqs[1].table_begin, 2);
  EXPECT_EQ(batch.seqs[0].logits_count, 1);
  EXPECT_EQ(batch.seqs[1].logits_count, 0);
  EXPECT_EQ(batch.logits_rows, 1);
}

TEST_F(BatchBuilderTest, ASpecDrawsTheNextPositionFromWhatIsKnown) {
  const Request a = MakeRequest(1, 5, 9);
  const std::vector<TokenId> known = RandomTokens(1, 7);
  const std::vector<BlockId> table = {BlockId{0}};
  const std::vector<PlannedSeq> seqs = {Seq(a, known, 0, 7, table)};
  builder_.Build({.seqs = seqs, .copies = {}, .admitted = {}, .preempted = {}, .num_tokens = 7});
  ASSERT_EQ(builder_.specs().size(), 1u);
  const SampleSpec& spec = builder_.specs()[0];
  EXPECT_EQ(spec.position, 7);
  EXPECT_EQ(spec.logits_row, 0);
  EXPECT_EQ(spec.params, &a.sampling);
  EXPECT_EQ(spec.history.size(), 7u);
  EXPECT_TRUE(spec.banned.empty());
  EXPECT_TRUE(spec.allowed.empty());
}

TEST_F(BatchBuilderTest, BansEndsBelowMinTokensOnly) {
  Request young = MakeRequest(1, 5, 9), old = MakeRequest(2, 5, 9), free = MakeRequest(3, 5, 9);
  young.stop.eos_ids = {TokenId{256}};
  young.stop.stop_ids = {TokenId{10}, TokenId{11}};
  young.stop.min_tokens = old.stop.min_tokens = 2;
  old.stop.eos_ids = {TokenId{257}};
  const std::vector<TokenId> one_drawn = RandomTokens(1, 6), two_drawn = RandomTokens(2, 7),
                             five = RandomTokens(3, 5);
  const std::vector<BlockId> t0 = {BlockId{0}}, t1 = {BlockId{1}}, t2 = {BlockId{2}};
  const std::vector<PlannedSeq> seqs = {Seq(young, one_drawn, 5, 1, t0),
                                        Seq(old, two_drawn, 6, 1, t1), Seq(free, five, 0, 5, t2)};
  builder_.Build({.seqs = seqs, .copies = {}, .admitted = {}, .preempted = {}, .num_tokens = 7});
  ASSERT_EQ(builder_.specs().size(), 3u);
  const std::span<const TokenId> banned = builder_.specs()[0].banned;
  EXPECT_EQ(std::vector<TokenId>(banned.begin(), banned.end()),
            (std::vector<TokenId>{TokenId{256}, TokenId{10}, TokenId{11}}));
  EXPECT_TRUE(builder_.specs()[1].banned.empty());
  EXPECT_TRUE(builder_.specs()[2].banned.empty());
}

TEST_F(BatchBuilderTest, ForgetsTheStepBefore) {
  const Request a = MakeRequest(1, 5, 9);
  const std::vector<TokenId> known = RandomTokens(1, 5);
  const std::vector<BlockId> table = {BlockId{3}};
  const std::vector<BlockCopy> copies = {{BlockId{1}, BlockId{2}, 5}};
  const std::vector<PlannedSeq> seqs = {Seq(a, known, 0, 5, table)};
  builder_.Build(
      {.seqs = seqs, .copies = copies, .admitted = {}, .preempted = {}, .num_tokens = 5});
  const StepBatch& batch = builder_.Build(
      {.seqs = seqs, .copies = {}, .admitted = {}, .preempted = {}, .num_tokens = 5});
  EXPECT_EQ(batch.tokens.size(), 5u);
  EXPECT_EQ(batch.seqs.size(), 1u);
  EXPECT_EQ(batch.logits_rows, 1);
  EXPECT_TRUE(batch.copies.empty());
}

TEST_F(BatchBuilderTest, DeathOnAPlanBeyondTheLimits) {
  EXPECT_DEATH(
      builder_.Build({.seqs = {}, .copies = {}, .admitted = {}, .preempted = {}, .num_tokens = 17}),
      "17");
}

}  // namespace
}  // namespace quire
