// How a step's attention is cut into items for the workers. Built once per step by the engine
// thread in storage sized at construction, then read by all workers. The cut never changes a bit:
// an item is either all chunks of a query tile, or one chunk of it whose state is merged in order
// by whoever finishes the last.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/step_batch.h"

namespace quire {

// 256 tokens at absolute positions: part of the arithmetic.
inline constexpr int32_t kChunkTiles = 4;
inline constexpr int32_t kQueryTileRows = 48;  // rows of one product at most

// Query heads of one KV head are rows of one product: row = token * heads + head.
struct QueryTiling {
  int32_t group = 1;  // query heads per KV head
  int32_t tokens_per_tile = 1;
  int32_t heads_per_tile = 1;  // = group unless that exceeds kQueryTileRows
  int32_t head_tiles = 1;

  static QueryTiling Make(int32_t group);
  int32_t max_rows() const { return tokens_per_tile * heads_per_tile; }
};

struct AttentionItem {
  int32_t row_begin, tokens;  // rows of the step
  int32_t visible;            // tokens that the first of them sees
  int32_t table_begin;        // its block table in StepBatch::block_ids
  int32_t kv_head;
  int32_t head_begin, head_count;  // of the group
  int32_t chunk_begin, chunk_end;
  int32_t split = -1;  // index into splits(), -1: the item is whole
  int32_t rows() const { return tokens * head_count; }
  int32_t tiles() const { return BlocksFor(visible + tokens - 1); }
  int32_t chunks() const { return (tiles() + kChunkTiles - 1) / kChunkTiles; }
};

// A query tile of one KV head whose chunks are items of their own.
struct AttentionSplit {
  int64_t first_state;  // floats into the partial states
  int32_t chunks;
};

struct AttentionPlanOptions {
  QueryTiling tiling;
  int32_t num_kv_heads = 1;
  int32_t workers = 1;
  int32_t max_rows = 1, max_seqs = 1;
  int32_t context_tokens = 1;
  int32_t state_stride = 16;  // floats of one row of o
  bool split_long_items = true;
};

class AttentionPlan {
 public:
  explicit AttentionPlan(const AttentionPlanOptions& options);

  void Build(std::span<const SeqSpan> seqs);

  std::span<const AttentionItem> items() const {
    return items_;
  }  // longest first, single chunks last
  std::span<const AttentionSplit> splits() const { return splits_; }
  int32_t max_splits() const { return max_splits_; }
  int64_t max_state_floats() const { return max_state_floats_; }  // of all partial states of a step
  // Floats of one state of `rows` rows: m, l, o.
  static int64_t StateFloats(int32_t rows, int32_t stride) {
    return 2 * ((rows + 15) / 16 * 16) + int64_t{rows} * stride;
  }

 private:
  struct Unit {
    int64_t cost;
    AttentionItem item;  // of KV head 0
  };
  void AddUnits(const SeqSpan& seq);
  bool AddSplit(const AttentionItem& item);

  const AttentionPlanOptions options_;
  int32_t max_splits_ = 0;
  int64_t max_state_floats_ = 0, state_floats_ = 0;
  size_t max_items_ = 0;
  std::vector<Unit> units_;
  std::vector<AttentionItem> items_, split_items_;
  std::vector<AttentionSplit> splits_;
};

}  // namespace quire
