// How a step's attention is cut into items for the workers. Built once per step by the engine
// thread in storage sized at construction, then read by all workers. The cut never changes a bit:
// an item is either all chunks of a query tile, or one chunk of it whose state is merged in order
// by whoever finishes the last. Chunks that sequences share are items of their own, first in the
// list: they leave a fold state per row, which the sequences' items continue.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernels/attention_cascade.h"
#include "runtime/kernels/attention_mask.h"
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

// A step as attention sees it.
struct AttentionStep {
  std::span<const SeqSpan> seqs;
  AttentionFacts facts = {};
  const AttentionCascade* cascade = nullptr;  // null: nothing is shared

  SequenceFacts FactsOf(int32_t seq) const {
    return facts.seqs.empty() ? SequenceFacts() : facts.seqs[seq];
  }
  SequenceView View(const LayerAttention& layer, int32_t seq) const;
  // Some row of the sequence is past its window, so that it does not see all that the layer shows.
  bool HasGaps(int32_t seq) const {
    return seqs[seq].window_tokens > 0 &&
           seqs[seq].kv_len - seqs[seq].window_tokens > seqs[seq].sink_tokens;
  }
};

struct AttentionItem {
  int32_t seq;                // its index in the step; unused by shared items
  int32_t row_begin, tokens;  // rows of the step; of shared items those in carried()
  int32_t visible;            // tokens up to and with the first of them, of shared items at least
  int32_t table_begin;        // its block table
  int32_t kv_head;
  int32_t head_begin, head_count;  // of the group
  int32_t tile_end;                // of the whole query tile
  int32_t chunk_begin, chunk_end;
  int32_t split = -1, part = 0;  // index into splits() and its place there, -1: the item is whole
  int32_t carry = -1;            // first slot of the rows' carried fold states
  int32_t shared = -1;           // the shared item (and KV head) that makes these states
  bool makes_carry = false;      // it is that item
  bool gaps = false;             // the sequence's window hides tokens from some rows
  int32_t rows() const { return tokens * head_count; }
  int32_t tiles() const { return tile_end; }
  int32_t chunks() const { return (tile_end + kChunkTiles - 1) / kChunkTiles; }
};

// A query tile of one KV head whose chunks are items of their own.
struct AttentionSplit {
  int64_t first_state;  // floats into the partial states
  int32_t chunks;       // parts: chunks that are seen
};

// A row whose first chunks are computed with those of other sequences; its slot is its index.
struct CarriedRow {
  int32_t seq, row, position;
};

struct AttentionPlanOptions {
  QueryTiling tiling;
  int32_t num_kv_heads = 1;
  int32_t workers = 1;
  int32_t max_rows = 1, max_seqs = 1;
  int32_t context_tokens = 1;  // of the keys: the encoder's for LayerAttention::kCross
  int32_t state_stride = 16;   // floats of one row of o
  bool split_long_items = true;
  int32_t max_carried = 0;  // rows
  LayerAttention layer = {};
};

class AttentionPlan {
 public:
  explicit AttentionPlan(const AttentionPlanOptions& options);

  void Build(const AttentionStep& step);

  // Shared items first, then whole items, longest first, then single chunks.
  std::span<const AttentionItem> items() const { return items_; }
  std::span<const AttentionSplit> splits() const { return splits_; }
  std::span<const CarriedRow> carried() const { return carried_; }
  int64_t visible_tokens() const { return visible_tokens_; }  // summed over the step's rows
  int64_t tiles_read() const { return tiles_read_; }          // per KV head
  int32_t max_shared() const { return options_.max_seqs / 2 * options_.num_kv_heads; }
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
    int32_t chunks;      // that are seen
    TileRange range;
  };
  struct Start {  // of a sequence: what the shared items leave to do
    int32_t carry = -1, shared = -1, chunk = 0;
  };
  void AddShared(const AttentionStep& step);
  void AddSharedUnit(const AttentionStep& step, std::span<const int32_t> members, int32_t chunks);
  void AddUnits(const AttentionStep& step, int32_t seq);
  int64_t AddUnit(std::vector<Unit>& units, AttentionItem item, const TileRange& range);
  TileRange RangeOf(const SequenceView& view, int32_t position, int32_t tokens);
  void AddItems(std::span<const Unit> units, int64_t total);
  bool AddSplit(const AttentionItem& item, const Unit& unit);

  const AttentionPlanOptions options_;
  const bool plain_;
  int32_t max_splits_ = 0;
  int64_t max_state_floats_ = 0, state_floats_ = 0;
  int64_t visible_tokens_ = 0, tiles_read_ = 0;
  size_t max_items_ = 0;
  std::vector<Unit> units_, shared_units_;
  std::vector<Start> starts_;  // [seqs], empty: all from the start
  std::vector<CarriedRow> carried_;
  std::vector<AttentionItem> items_, split_items_;
  std::vector<AttentionSplit> splits_;
};

}  // namespace quire
