#include "scheduler/simulate/step_cost.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

// A batch of sequences, each given as rows, tokens seen by its last row, and its block table.
class Batch {
 public:
  void Add(int32_t rows, int32_t kv_len, std::vector<int32_t> table, int32_t draws = 1) {
    seqs_.push_back({.row_begin = rows_,
                     .row_count = rows,
                     .kv_len = kv_len,
                     .table_begin = static_cast<int32_t>(ids_.size()),
                     .logits_begin = draws_,
                     .logits_count = draws});
    for (const int32_t id : table) ids_.push_back(BlockId{id});
    rows_ += rows;
    draws_ += draws;
  }
  StepBatch Get() {
    tokens_.resize(static_cast<size_t>(rows_));
    StepBatch batch;
    batch.tokens = tokens_;
    batch.block_ids = ids_;
    batch.seqs = seqs_;
    batch.logits_rows = draws_;
    return batch;
  }

 private:
  std::vector<SeqSpan> seqs_;
  std::vector<BlockId> ids_;
  std::vector<TokenId> tokens_;
  int32_t rows_ = 0, draws_ = 0;
};

std::vector<int32_t> Blocks(int32_t first, int32_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(ShapeReader, CountsRowsAndWhatTheySee) {
  Batch batch;
  batch.Add(1, 100, {0, 1});
  batch.Add(1, 64, {2});
  batch.Add(3, 10, {3}, 0);
  ShapeReader reader(8);
  const BatchShape shape = reader.Read(batch.Get());
  EXPECT_EQ(shape.rows, 5);
  EXPECT_EQ(shape.sequences, 3);
  EXPECT_EQ(shape.draws, 2);
  EXPECT_EQ(shape.decode_kv, 164);
  EXPECT_EQ(shape.decode_kv_read, 164);
  EXPECT_EQ(shape.prefill_kv, 10);
  EXPECT_EQ(shape.prefill_pairs, 8 + 9 + 10);
}

TEST(ShapeReader, CountsSharedWholeChunksOnce) {
  std::vector<int32_t> table = Blocks(0, 6), other = Blocks(0, 6);
  other[5] = 7;
  Batch batch;
  batch.Add(1, 6 * 64, table);      // one whole chunk of 256 tokens, and the rest
  batch.Add(1, 6 * 64, other);      // shares five blocks: one chunk counts
  batch.Add(1, 256, Blocks(0, 4));  // its own row is in the chunk: nothing is shared as a whole
  ShapeReader reader(8);
  for (int step = 0; step < 2; ++step) {
    const BatchShape shape = reader.Read(batch.Get());
    EXPECT_EQ(shape.decode_kv, 6 * 64 + 6 * 64 + 256);
    EXPECT_EQ(shape.decode_kv_read, 6 * 64 + 2 * 64 + 256);
  }
}

TEST(CostModel, PricesRowsPieceByPiece) {
  CostModel model;
  const auto set = [&](CostTerm term, double s) { model.seconds[static_cast<size_t>(term)] = s; };
  set(CostTerm::kStep, 1000);
  set(CostTerm::kRowsTo4, 100);
  set(CostTerm::kRowsTo16, 10);
  set(CostTerm::kRowsTo64, 1);
  set(CostTerm::kRowsBeyond, 0.5);
  set(CostTerm::kDrawStep, 7);
  EXPECT_DOUBLE_EQ(model.Seconds({.rows = 1, .sequences = 1}), 1100);
  EXPECT_DOUBLE_EQ(model.Seconds({.rows = 6, .sequences = 1}), 1420);
  EXPECT_DOUBLE_EQ(model.Seconds({.rows = 70, .sequences = 1, .draws = 2}),
                   1000 + 400 + 120 + 48 + 3 + 7);
}

}  // namespace
}  // namespace quire
