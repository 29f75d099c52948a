#include "runtime/kernels/attention_mask.h"

#include <bit>

namespace quire {
namespace {

// What the layer alone lets the row see.
RowView RowOfLayer(const LayerAttention& layer, const SequenceView& seq, int32_t position) {
  int32_t end = seq.tokens;
  if (layer.reach == AttentionReach::kCausal) {
    end = position + 1;
  } else if (layer.reach == AttentionReach::kPrefix) {
    end = std::max(position + 1, std::min(seq.prefix, seq.tokens));
  }
  RowView row = {.position = position, .lo = 0, .hi = end, .end = end, .globals = nullptr};
  if (layer.reach == AttentionReach::kCross) return row;
  if (layer.global_tokens && seq.globals != nullptr) {
    if ((seq.globals[position / kBlockTokens] >> (position % kBlockTokens) & 1) != 0) return row;
    row.globals = seq.globals;
  }
  if (layer.window > 0) {
    row.lo = std::max(0, position + 1 - layer.window);
    row.hi = static_cast<int32_t>(std::min<int64_t>(end, int64_t{position} + layer.window));
  }
  if (layer.local_chunk > 0) {
    const int32_t begin = position / layer.local_chunk * layer.local_chunk;
    row.lo = std::max(row.lo, begin);
    row.hi = static_cast<int32_t>(std::min<int64_t>(row.hi, int64_t{begin} + layer.local_chunk));
  }
  return row;
}

}  // namespace

RowView RowView::Make(const LayerAttention& layer, const SequenceView& seq, int32_t position) {
  RowView row = RowOfLayer(layer, seq, position);
  if (seq.window_tokens <= 0 || layer.reach == AttentionReach::kCross) return row;
  row.gap_begin = seq.sink_tokens;
  row.gap_end = std::max(seq.sink_tokens, position + 1 - seq.window_tokens);
  return row;
}

int64_t RowView::Count(int32_t sink_tokens) const {
  const bool gap = gap_begin < gap_end;
  if (lo == 0 && hi == end) return gap ? end - (gap_end - gap_begin) : end;
  if (globals == nullptr && !gap)
    return hi - lo + std::min(lo, sink_tokens) + std::max(0, std::min(end, sink_tokens) - hi);
  int64_t count = 0;
  for (int32_t tile = 0; tile < BlocksFor(end); ++tile)
    count += std::popcount(Word(tile, sink_tokens));
  return count;
}

void TileRange::Add(const TileRange& other) {
  gap_begin = std::max(gap_begin, other.gap_begin);
  gap_end = limit == 0 ? other.gap_end : std::min(gap_end, other.gap_end);
  lo = limit == 0 ? other.lo : std::min(lo, other.lo);
  hi = std::max(hi, other.hi);
  limit = std::max(limit, other.limit);
  if (other.globals != nullptr) globals = other.globals;
}

bool IsPlainCausal(const LayerAttention& layer) {
  return layer.reach == AttentionReach::kCausal && layer.window <= 0 && layer.local_chunk <= 0 &&
         !layer.global_tokens;
}

}  // namespace quire
