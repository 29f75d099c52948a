// Invariants: nothing grows beyond the capacity reserved in the constructor; a split takes place
// only if all its chunks' states fit.
#include "runtime/kernels/attention_plan.h"

#include <algorithm>

#include "absl/log/check.h"

namespace quire {
namespace {

constexpr int64_t kMaxStateFloats = int64_t{4} << 20;  // 16 MiB of partial states
constexpr int32_t kItemsPerWorker = 4;  // an item above 1 / (4 workers) of the work is split

}  // namespace

QueryTiling QueryTiling::Make(int32_t group) {
  QueryTiling t;
  t.group = group;
  t.head_tiles = (group + kQueryTileRows - 1) / kQueryTileRows;
  t.heads_per_tile = (group + t.head_tiles - 1) / t.head_tiles;
  t.head_tiles = (group + t.heads_per_tile - 1) / t.heads_per_tile;
  t.tokens_per_tile = t.head_tiles > 1 ? 1 : kQueryTileRows / group;
  return t;
}

AttentionPlan::AttentionPlan(const AttentionPlanOptions& options) : options_(options) {
  const QueryTiling& t = options.tiling;
  const size_t max_units =
      (static_cast<size_t>(options.max_rows) / t.tokens_per_tile + options.max_seqs) * t.head_tiles;
  const int64_t max_chunks = (BlocksFor(options.context_tokens) + kChunkTiles - 1) / kChunkTiles;
  units_.reserve(max_units);
  max_items_ = max_units * options.num_kv_heads;
  if (options.split_long_items && options.workers > 1) {
    max_splits_ = kItemsPerWorker * options.workers;
    max_state_floats_ =
        std::min(max_splits_ * max_chunks * StateFloats(t.max_rows(), options.state_stride),
                 kMaxStateFloats);
    max_items_ += max_splits_ * max_chunks;
    split_items_.reserve(max_splits_ * max_chunks);
    splits_.reserve(max_splits_);
  }
  items_.reserve(max_items_);
}

void AttentionPlan::AddUnits(const SeqSpan& seq) {
  const QueryTiling& t = options_.tiling;
  const int32_t first_visible = seq.kv_len - seq.row_count + 1;
  for (int32_t token = 0; token < seq.row_count; token += t.tokens_per_tile) {
    for (int32_t head = 0; head < t.group; head += t.heads_per_tile) {
      AttentionItem item = {.row_begin = seq.row_begin + token,
                            .tokens = std::min(t.tokens_per_tile, seq.row_count - token),
                            .visible = first_visible + token,
                            .table_begin = seq.table_begin,
                            .kv_head = 0,
                            .head_begin = head,
                            .head_count = std::min(t.heads_per_tile, t.group - head),
                            .chunk_begin = 0,
                            .chunk_end = 0};
      item.chunk_end = item.chunks();
      // A tile costs its KV traffic besides its rows.
      const int64_t cost = int64_t{item.tiles()} * (item.rows() + 2);
      DCHECK_LT(units_.size(), units_.capacity());
      units_.push_back({cost, item});
    }
  }
}

bool AttentionPlan::AddSplit(const AttentionItem& item) {
  const int32_t chunks = item.chunks();
  const int64_t floats = chunks * StateFloats(item.rows(), options_.state_stride);
  if (state_floats_ + floats > max_state_floats_ ||
      static_cast<int32_t>(splits_.size()) == max_splits_)
    return false;
  AttentionItem part = item;
  part.split = static_cast<int32_t>(splits_.size());
  for (int32_t chunk = 0; chunk < chunks; ++chunk) {
    part.chunk_begin = chunk;
    part.chunk_end = chunk + 1;
    split_items_.push_back(part);
  }
  splits_.push_back({state_floats_, chunks});
  state_floats_ += floats;
  return true;
}

void AttentionPlan::Build(std::span<const SeqSpan> seqs) {
  units_.clear();
  items_.clear();
  split_items_.clear();
  splits_.clear();
  state_floats_ = 0;
  for (const SeqSpan& seq : seqs) AddUnits(seq);
  std::sort(units_.begin(), units_.end(),
            [](const Unit& a, const Unit& b) { return a.cost > b.cost; });
  int64_t total = 0;
  for (const Unit& unit : units_) total += unit.cost;
  total *= options_.num_kv_heads;
  for (const Unit& unit : units_) {
    const bool long_item = max_splits_ > 0 && unit.item.chunks() > 1 &&
                           unit.cost * kItemsPerWorker * options_.workers > total;
    for (int32_t head = 0; head < options_.num_kv_heads; ++head) {
      AttentionItem item = unit.item;
      item.kv_head = head;
      if (!long_item || !AddSplit(item)) items_.push_back(item);
    }
  }
  items_.insert(items_.end(), split_items_.begin(), split_items_.end());
  DCHECK_LE(items_.size(), max_items_);
}

}  // namespace quire
