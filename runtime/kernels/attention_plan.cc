// Invariants: nothing grows beyond the capacity reserved in the constructor; a split takes place
// only if all its chunks' states fit.
#include "runtime/kernels/attention_plan.h"

#include <algorithm>
#include <limits>

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

SequenceView AttentionStep::View(const LayerAttention& layer, int32_t seq) const {
  const SequenceFacts sequence = FactsOf(seq);
  const bool cross = layer.reach == AttentionReach::kCross;
  const bool globals = layer.global_tokens && sequence.global_begin >= 0;
  return {.tokens = cross ? sequence.cross_len : seqs[seq].kv_len,
          .prefix = sequence.prefix,
          .globals = globals ? facts.global_words.data() + sequence.global_begin : nullptr,
          .window_tokens = seqs[seq].window_tokens,
          .sink_tokens = seqs[seq].sink_tokens};
}

AttentionPlan::AttentionPlan(const AttentionPlanOptions& options)
    : options_(options), plain_(IsPlainCausal(options.layer)) {
  const QueryTiling& t = options.tiling;
  const size_t max_units =
      (static_cast<size_t>(options.max_rows) / t.tokens_per_tile + options.max_seqs) * t.head_tiles;
  const size_t max_shared = options.max_carried > 0 ? options.max_seqs / 2 : 0;
  const int64_t max_chunks = (BlocksFor(options.context_tokens) + kChunkTiles - 1) / kChunkTiles;
  units_.reserve(max_units);
  shared_units_.reserve(max_shared);
  starts_.reserve(max_shared > 0 ? options.max_seqs : 0);
  carried_.reserve(options.max_carried);
  max_items_ = (max_units + max_shared) * options.num_kv_heads;
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

// Of `tokens` rows of one sequence; counts what they see.
TileRange AttentionPlan::RangeOf(const SequenceView& view, int32_t position, int32_t tokens) {
  if (plain_ &&
      !(view.window_tokens > 0 && position + tokens - view.window_tokens > view.sink_tokens)) {
    visible_tokens_ += int64_t{tokens} * (position + 1) + int64_t{tokens} * (tokens - 1) / 2;
    return {.lo = 0, .hi = position + tokens, .limit = position + tokens};
  }
  TileRange range;
  range.sink_tokens = options_.layer.sink_tokens;
  for (int32_t i = 0; i < tokens; ++i) {
    const RowView row = RowView::Make(options_.layer, view, position + i);
    visible_tokens_ += row.Count(range.sink_tokens);
    range.Add(row);
  }
  return range;
}

// Sets what follows from the range: the item's end, cost and number of chunks. Returns its tiles.
int64_t AttentionPlan::AddUnit(std::vector<Unit>& units, AttentionItem item,
                               const TileRange& range) {
  Unit unit = {.cost = 0, .item = item, .chunks = 0, .range = range};
  int32_t tiles = 0;
  const int32_t first = item.chunk_begin * kChunkTiles;
  const int32_t end = std::min(range.end(), item.tile_end);
  if (plain_ && !item.gaps) {
    tiles = end - first;
    unit.chunks = (tiles + kChunkTiles - 1) / kChunkTiles;
  } else {
    int32_t last_chunk = -1;
    for (int32_t tile = range.Next(first); tile < end; tile = range.Next(tile + 1), ++tiles) {
      if (tile / kChunkTiles != last_chunk) ++unit.chunks;
      last_chunk = tile / kChunkTiles;
    }
  }
  unit.item.tile_end = end;
  unit.item.chunk_end = std::max(unit.item.chunks(), item.chunk_begin);
  // A tile costs its KV traffic besides its rows.
  unit.cost = int64_t{tiles} * (item.rows() + 2);
  DCHECK_LT(units.size(), units.capacity());
  units.push_back(unit);
  return tiles;
}

void AttentionPlan::AddUnits(const AttentionStep& step, int32_t index) {
  const QueryTiling& t = options_.tiling;
  const SeqSpan& seq = step.seqs[index];
  const Start start = starts_.empty() ? Start() : starts_[index];
  const SequenceView view = step.View(options_.layer, index);
  const bool cross = options_.layer.reach == AttentionReach::kCross;
  const int32_t table = cross ? step.FactsOf(index).cross_table_begin : seq.table_begin;
  const int32_t first_position = seq.kv_len - seq.row_count;
  TileRange all;
  for (int32_t token = 0; token < seq.row_count; token += t.tokens_per_tile) {
    const int32_t tokens = std::min(t.tokens_per_tile, seq.row_count - token);
    const TileRange range = RangeOf(view, first_position + token, tokens);
    if (token == 0) all = range;
    all.Add(range);
    for (int32_t head = 0; head < t.group; head += t.heads_per_tile) {
      AddUnit(units_,
              {.seq = index,
               .row_begin = seq.row_begin + token,
               .tokens = tokens,
               .visible = first_position + token + 1,
               .table_begin = table,
               .kv_head = 0,
               .head_begin = head,
               .head_count = std::min(t.heads_per_tile, t.group - head),
               .tile_end = range.end(),
               .chunk_begin = start.chunk,
               .chunk_end = start.chunk,
               .carry = start.carry,
               .shared = start.shared,
               .gaps = step.HasGaps(index)},
              range);
    }
  }
  const int32_t first = start.chunk * kChunkTiles;
  if (plain_ && !step.HasGaps(index)) {
    tiles_read_ += all.end() - first;
    return;
  }
  for (int32_t tile = all.Next(first); tile < all.end(); tile = all.Next(tile + 1)) ++tiles_read_;
}

// One item over the leading chunks of some sequences.
void AttentionPlan::AddSharedUnit(const AttentionStep& step, std::span<const int32_t> members,
                                  int32_t chunks) {
  const int32_t index = static_cast<int32_t>(shared_units_.size());
  const int32_t carry = static_cast<int32_t>(carried_.size());
  TileRange range;
  int32_t visible = std::numeric_limits<int32_t>::max();
  const int64_t counted = visible_tokens_;
  for (int32_t member : members) {
    const SeqSpan& seq = step.seqs[member];
    const int32_t position = seq.kv_len - seq.row_count;
    starts_[member] = {.carry = static_cast<int32_t>(carried_.size()),
                       .shared = index * options_.num_kv_heads,
                       .chunk = chunks};
    const TileRange rows = RangeOf(step.View(options_.layer, member), position, seq.row_count);
    if (member == members.front()) range = rows;
    range.Add(rows);
    if (rows.globals != nullptr) range.lo = 0;  // differ from sequence to sequence
    visible = std::min(visible, position + 1);
    for (int32_t i = 0; i < seq.row_count; ++i)
      carried_.push_back({member, seq.row_begin + i, position + i});
  }
  range.globals = nullptr;
  visible_tokens_ = counted;  // their own items count them
  tiles_read_ += AddUnit(shared_units_,
                         {.seq = members.front(),
                          .row_begin = 0,
                          .tokens = static_cast<int32_t>(carried_.size()) - carry,
                          .visible = visible,
                          .table_begin = step.seqs[members.front()].table_begin,
                          .kv_head = 0,
                          .head_begin = 0,
                          .head_count = options_.tiling.group,
                          .tile_end = chunks * kChunkTiles,
                          .chunk_begin = 0,
                          .chunk_end = 0,
                          .carry = carry,
                          .shared = index * options_.num_kv_heads,
                          .makes_carry = true},
                         range);
}

void AttentionPlan::AddShared(const AttentionStep& step) {
  starts_.assign(step.seqs.size(), Start());
  for (const CascadeGroup& group : step.cascade->groups()) {
    std::span<const int32_t> rest =
        step.cascade->members().subspan(group.member_begin, group.member_count);
    while (rest.size() > 1) {
      size_t count = 0;
      int32_t tokens = 0;
      while (count < rest.size() &&
             tokens + step.seqs[rest[count]].row_count <= options_.tiling.tokens_per_tile)
        tokens += step.seqs[rest[count++]].row_count;
      if (carried_.size() + tokens > static_cast<size_t>(options_.max_carried)) return;
      if (count > 1) AddSharedUnit(step, rest.first(count), group.chunks);
      rest = rest.subspan(count);
    }
  }
}

bool AttentionPlan::AddSplit(const AttentionItem& item, const Unit& unit) {
  const int64_t floats = unit.chunks * StateFloats(item.rows(), options_.state_stride);
  if (state_floats_ + floats > max_state_floats_ ||
      static_cast<int32_t>(splits_.size()) == max_splits_)
    return false;
  AttentionItem part = item;
  part.split = static_cast<int32_t>(splits_.size());
  part.part = 0;
  for (int32_t chunk = item.chunk_begin; chunk < item.chunk_end; ++chunk) {
    const bool all_seen = plain_ && !item.gaps;
    if (!all_seen && unit.range.Next(chunk * kChunkTiles) >= (chunk + 1) * kChunkTiles) continue;
    part.chunk_begin = chunk;
    part.chunk_end = chunk + 1;
    split_items_.push_back(part);
    ++part.part;
  }
  DCHECK_EQ(part.part, unit.chunks);
  splits_.push_back({state_floats_, unit.chunks});
  state_floats_ += floats;
  return true;
}

void AttentionPlan::AddItems(std::span<const Unit> units, int64_t total) {
  split_items_.clear();
  for (const Unit& unit : units) {
    const bool long_item = max_splits_ > 0 && unit.chunks > 1 &&
                           unit.cost * kItemsPerWorker * options_.workers > total;
    for (int32_t head = 0; head < options_.num_kv_heads; ++head) {
      AttentionItem item = unit.item;
      item.kv_head = head;
      if (item.shared >= 0) item.shared += head;
      if (!long_item || !AddSplit(item, unit)) items_.push_back(item);
    }
  }
  items_.insert(items_.end(), split_items_.begin(), split_items_.end());
}

void AttentionPlan::Build(const AttentionStep& step) {
  units_.clear();
  shared_units_.clear();
  starts_.clear();
  carried_.clear();
  items_.clear();
  splits_.clear();
  state_floats_ = visible_tokens_ = tiles_read_ = 0;
  if (step.cascade != nullptr && !step.cascade->groups().empty() && options_.max_carried > 0)
    AddShared(step);
  for (size_t i = 0; i < step.seqs.size(); ++i) AddUnits(step, static_cast<int32_t>(i));
  std::sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) {
    return a.cost != b.cost ? a.cost > b.cost : a.item.row_begin < b.item.row_begin;
  });
  int64_t total = 0;
  for (const std::vector<Unit>* units : {&shared_units_, &units_}) {
    for (const Unit& unit : *units) total += unit.cost;
  }
  total *= options_.num_kv_heads;
  AddItems(shared_units_, total);  // first: others wait for them, they wait for none
  AddItems(units_, total);
  DCHECK_LE(items_.size(), max_items_);
}

}  // namespace quire
