// Visibility of one layer as intervals and 64-bit words, one word per query token and tile of 64
// tokens. Pure functions of spec, facts and positions, for the plan and for the workers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/ids.h"
#include "runtime/kernels/attention_spec.h"

namespace quire {

// A sequence as one layer's attention meets it.
struct SequenceView {
  int32_t tokens = 0;                 // that keys exist for
  int32_t prefix = 0;                 // kPrefix
  const uint64_t* globals = nullptr;  // word per tile, or null
  // Of SeqSpan: what is left of its KV.
  int32_t window_tokens = 0, sink_tokens = 0;
};

// What one query token sees.
struct RowView {
  int32_t position = 0;
  int32_t lo = 0, hi = 0, end = 0;  // attention_spec.h
  const uint64_t* globals = nullptr;
  // Tokens in between are none the row sees, whatever the layer says: the sequence's window has
  // passed them.
  int32_t gap_begin = 0, gap_end = 0;

  static RowView Make(const LayerAttention& layer, const SequenceView& seq, int32_t position);
  // Bit t: token 64 * tile + t is seen.
  uint64_t Word(int32_t tile, int32_t sink_tokens) const {
    const int32_t base = tile * kBlockTokens;
    const uint64_t existing = Below(end - base);
    if (existing == 0) return 0;
    uint64_t seen = (Below(hi - base) & ~Below(lo - base)) | Below(sink_tokens - base);
    if (globals != nullptr) seen |= globals[tile];
    if (gap_begin < gap_end) seen &= ~(Below(gap_end - base) & ~Below(gap_begin - base));
    return seen & existing;
  }
  int64_t Count(int32_t sink_tokens) const;  // of tokens seen

 private:
  static uint64_t Below(int32_t n) {
    return n <= 0 ? 0 : n >= kBlockTokens ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
  }
};

// Tiles that some rows may see; may name tiles that none does, never misses one.
struct TileRange {
  int32_t lo = 0, hi = 0, limit = 0;  // union of the rows' intervals, their largest end
  int32_t sink_tokens = 0;
  const uint64_t* globals = nullptr;
  int32_t gap_begin = 0, gap_end = 0;  // of all rows

  int32_t end() const { return BlocksFor(limit); }
  // The first tile >= `tile` that may be seen; end() if none.
  int32_t Next(int32_t tile) const {
    while (tile < end() && !MaySee(tile)) {
      const int32_t after = InGap(tile)          ? gap_end / kBlockTokens
                            : globals == nullptr ? lo / kBlockTokens
                                                 : 0;
      tile = std::max(tile + 1, after);
    }
    return std::min(tile, end());
  }
  void Add(const RowView& row) {
    Add({.lo = row.lo,
         .hi = row.hi,
         .limit = row.end,
         .sink_tokens = 0,
         .globals = row.globals,
         .gap_begin = row.gap_begin,
         .gap_end = row.gap_end});
  }
  void Add(const TileRange& other);

 private:
  bool InGap(int32_t tile) const {
    return tile * kBlockTokens >= gap_begin && (tile + 1) * kBlockTokens <= gap_end;
  }
  bool MaySee(int32_t tile) const {
    if (InGap(tile)) return false;
    const int32_t base = tile * kBlockTokens;
    return (base + kBlockTokens > lo && base < hi) || base < sink_tokens ||
           (globals != nullptr && globals[tile] != 0);
  }
};

// Whether rows see all tokens up to their own and nothing else decides.
bool IsPlainCausal(const LayerAttention& layer);

}  // namespace quire
