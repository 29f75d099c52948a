#include "runtime/kernels/attention_plan.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

AttentionPlanOptions Options(int32_t group, int32_t kv_heads, int32_t workers) {
  return {.tiling = QueryTiling::Make(group),
          .num_kv_heads = kv_heads,
          .workers = workers,
          .max_rows = 200,
          .max_seqs = 40,
          .context_tokens = 4096,
          .state_stride = 64,
          .split_long_items = true};
}

SeqSpan Seq(int32_t row_begin, int32_t rows, int32_t kv_len) {
  return {.row_begin = row_begin,
          .row_count = rows,
          .kv_len = kv_len,
          .table_begin = 0,
          .logits_begin = 0,
          .logits_count = 0};
}

TEST(QueryTiling, PacksTheHeadsOfAGroupIntoAtMost48Rows) {
  for (int32_t group = 1; group <= 130; ++group) {
    const QueryTiling t = QueryTiling::Make(group);
    EXPECT_LE(t.max_rows(), kQueryTileRows);
    EXPECT_GE(t.heads_per_tile * t.head_tiles, group);
    EXPECT_LT(t.heads_per_tile * (t.head_tiles - 1), group);
    if (group <= kQueryTileRows) {
      EXPECT_EQ(t.tokens_per_tile, kQueryTileRows / group);
    }
  }
}

// Every (row, KV head, head, chunk) exactly once; every row sees its own limit.
TEST(AttentionPlan, CoversEachRowHeadAndChunkOnce) {
  std::mt19937 rng(11);
  for (int32_t round = 0; round < 60; ++round) {
    const int32_t group = std::vector<int32_t>{1, 3, 8, 60}[round % 4], kv_heads = 1 + round % 3;
    AttentionPlan plan(Options(group, kv_heads, 1 + round % 4));
    std::vector<SeqSpan> seqs;
    int32_t row = 0;
    while (seqs.size() < 40 && row < 200) {
      const int32_t rows = std::min<int32_t>(200 - row, rng() % 3 == 0 ? 1 + rng() % 90 : 1);
      seqs.push_back(
          Seq(row, rows, std::min<int32_t>(4096, rows + rng() % (round % 5 == 0 ? 4000 : 300))));
      row += rows;
    }
    plan.Build({.seqs = seqs});
    std::map<std::tuple<int32_t, int32_t, int32_t, int32_t>, int32_t> seen;
    for (const AttentionItem& item : plan.items()) {
      for (int32_t r = 0; r < item.tokens; ++r) {
        for (int32_t h = 0; h < item.head_count; ++h) {
          for (int32_t c = item.chunk_begin; c < item.chunk_end; ++c)
            ++seen[{item.row_begin + r, item.kv_head, item.head_begin + h, c}];
        }
      }
      if (item.split >= 0) {
        EXPECT_EQ(item.chunks(), plan.splits()[item.split].chunks);
        EXPECT_LE(plan.splits()[item.split].first_state +
                      item.chunks() * AttentionPlan::StateFloats(item.rows(), 64),
                  plan.max_state_floats());
      } else {
        EXPECT_EQ(item.chunk_end, item.chunks());
      }
    }
    for (const auto& [key, count] : seen) EXPECT_EQ(count, 1);
    for (const SeqSpan& seq : seqs) {
      for (int32_t r = 0; r < seq.row_count; ++r) {
        const int32_t chunks = (seq.kv_len - seq.row_count + r + 256) / 256;
        for (int32_t c = 0; c < chunks; ++c)
          EXPECT_EQ((seen.count({seq.row_begin + r, kv_heads - 1, group - 1, c})), 1u);
      }
    }
  }
}

TEST(AttentionPlan, PutsLongItemsFirst) {
  AttentionPlan plan(Options(3, 3, 2));
  const std::vector<SeqSpan> seqs = {Seq(0, 1, 50), Seq(1, 1, 200), Seq(2, 1, 130), Seq(3, 1, 90)};
  plan.Build({.seqs = seqs});
  std::vector<int32_t> tiles;
  for (const AttentionItem& item : plan.items()) tiles.push_back(item.tiles());
  EXPECT_EQ(tiles, (std::vector<int32_t>{4, 4, 4, 3, 3, 3, 2, 2, 2, 1, 1, 1}));
}

TEST(AttentionPlan, SplitsALoneLongDecodeIntoChunks) {
  AttentionPlan plan(Options(3, 3, 2));
  const std::vector<SeqSpan> seqs = {Seq(0, 1, 2000)};
  plan.Build({.seqs = seqs});
  EXPECT_EQ(plan.splits().size(), 3u);
  EXPECT_EQ(plan.items().size(), 3u * 8);
}

TEST(AttentionPlan, LeavesABatchOfEqualDecodesWhole) {
  AttentionPlan plan(Options(3, 3, 2));
  std::vector<SeqSpan> seqs;
  for (int32_t i = 0; i < 32; ++i) seqs.push_back(Seq(i, 1, 1000));
  plan.Build({.seqs = seqs});
  EXPECT_TRUE(plan.splits().empty());
  EXPECT_EQ(plan.items().size(), 96u);
}

TEST(AttentionPlan, EmptyStepHasNoItems) {
  AttentionPlan plan(Options(3, 3, 2));
  plan.Build(AttentionStep());
  EXPECT_TRUE(plan.items().empty());
}

}  // namespace
}  // namespace quire
