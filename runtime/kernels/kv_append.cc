// Invariants: no store touches an element of another row's slot (two workers may fill one block), so V, whose
// tokens interleave in pairs, is written pair-wise only where one call owns both tokens.
#include "runtime/kernels/kv_append.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/log/check.h"

namespace quire {
namespace {

// Round to nearest even; NaN stays NaN. Independent of the rounding and denormal modes.
inline uint32_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return (bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16) | 0x40 : rounded;
}

struct Slot {
  BlockId block;
  int32_t offset;
};
inline Slot SlotOf(KvSlot slot) { return {BlockOf(slot), OffsetOf(slot)}; }

// Number of rows from `row` on that lie in its block, in consecutive slots.
int32_t RunInBlock(std::span<const KvSlot> slots, int32_t row) {
  const int32_t first = static_cast<int32_t>(slots[row]);
  const int32_t limit = std::min<int32_t>(kBlockTokens - OffsetOf(slots[row]), static_cast<int32_t>(slots.size()) - row);
  int32_t count = 1;
  while (count < limit && static_cast<int32_t>(slots[row + count]) == first + count) ++count;
  return count;
}

// Zeroes V of tokens [written, 64) of a block: the ones that this step does not write.
void ZeroV(const KvLayout& layout, std::byte* tile, int32_t written) {
  const int32_t odd = written % layout.pack;
  const int32_t whole = written / layout.pack + (odd != 0);  // groups left alone or cleared by element
  for (int32_t panel = 0; panel < layout.num_panels(); ++panel) {
    const size_t start = layout.VIndex(0, panel * KvLayout::kPanelDims) * layout.element_bytes();
    const size_t row_bytes = static_cast<size_t>(layout.PanelWidth(panel)) * layout.pack * layout.element_bytes();
    const size_t rows = kBlockTokens / layout.pack;
    std::memset(tile + start + whole * row_bytes, 0, (rows - whole) * row_bytes);
  }
  if (odd == 0) return;
  for (int32_t dim = 0; dim < layout.head_dim; ++dim) {
    std::memset(tile + layout.VIndex(written, dim) * layout.element_bytes(), 0, layout.element_bytes());
  }
}

void AppendF32(const KvLayout& layout, std::byte* block_tiles, int32_t token, const float* k, const float* v) {
  float* k_tile = reinterpret_cast<float*>(block_tiles);
  float* v_tile = reinterpret_cast<float*>(block_tiles + layout.tile_bytes());
  for (int32_t dim = 0; dim < layout.head_dim; ++dim) k_tile[dim * kBlockTokens + token] = k[dim];
  for (int32_t panel = 0; panel < layout.num_panels(); ++panel) {
    const int32_t dim = panel * KvLayout::kPanelDims;
    std::memcpy(v_tile + layout.VIndex(token, dim), v + dim, layout.PanelWidth(panel) * sizeof(float));
  }
}

void AppendKBf16(const KvLayout& layout, uint32_t* k_tile, int32_t token, const float* k) {
  for (int32_t dim = 0; dim < layout.head_dim; dim += 2) {
    k_tile[dim / 2 * kBlockTokens + token] = ToBf16(k[dim]) | (ToBf16(k[dim + 1]) << 16);
  }
}

void AppendVBf16(const KvLayout& layout, uint16_t* v_tile, int32_t token, const float* v) {
  for (int32_t panel = 0; panel < layout.num_panels(); ++panel) {
    uint16_t* row = v_tile + layout.VIndex(token, panel * KvLayout::kPanelDims);
    const float* src = v + panel * KvLayout::kPanelDims;
    for (int32_t i = 0; i < layout.PanelWidth(panel); ++i) row[2 * i] = static_cast<uint16_t>(ToBf16(src[i]));
  }
}

// Tokens `token` (even) and token + 1, which the caller owns both.
void AppendVBf16Pair(const KvLayout& layout, uint16_t* v_tile, int32_t token, const float* v0, const float* v1) {
  for (int32_t panel = 0; panel < layout.num_panels(); ++panel) {
    const int32_t dim = panel * KvLayout::kPanelDims;
    uint32_t* row = reinterpret_cast<uint32_t*>(v_tile + layout.VIndex(token, dim));
    for (int32_t i = 0; i < layout.PanelWidth(panel); ++i) {
      row[i] = ToBf16(v0[dim + i]) | (ToBf16(v1[dim + i]) << 16);
    }
  }
}

// Rows [row, row + count) go to consecutive slots of one block.
void AppendRun(const KvLayerView& kv, const KvRows& rows, int32_t head, int32_t row, int32_t count) {
  const KvLayout& layout = kv.layout;
  const Slot slot = SlotOf(rows.slots[row]);
  std::byte* tiles = kv.KTile(slot.block, head);
  const float* k = rows.k + row * rows.stride + int64_t{head} * layout.head_dim;
  const float* v = rows.v + row * rows.stride + int64_t{head} * layout.head_dim;
  if (layout.dtype == KvDType::kF32) {
    for (int32_t i = 0; i < count; ++i) AppendF32(layout, tiles, slot.offset + i, k + i * rows.stride, v + i * rows.stride);
    return;
  }
  uint32_t* k_tile = reinterpret_cast<uint32_t*>(tiles);
  uint16_t* v_tile = reinterpret_cast<uint16_t*>(tiles + layout.tile_bytes());
  for (int32_t i = 0; i < count; ++i) AppendKBf16(layout, k_tile, slot.offset + i, k + i * rows.stride);
  for (int32_t i = 0; i < count;) {
    const int32_t token = slot.offset + i;
    if (token % 2 == 0 && i + 1 < count) {
      AppendVBf16Pair(layout, v_tile, token, v + i * rows.stride, v + (i + 1) * rows.stride);
      i += 2;
    } else {
      AppendVBf16(layout, v_tile, token, v + i * rows.stride);
      ++i;
    }
  }
}

}  // namespace

void AppendKv(const KvLayerView& kv, const KvRows& rows, const KvAppendPart& part) {
  for (int32_t row = part.row_begin; row < part.row_end;) {
    const int32_t in_block = RunInBlock(rows.slots, row);
    const int32_t count = std::min(in_block, part.row_end - row);
    for (int32_t head = part.head_begin; head < part.head_end; ++head) {
      if (OffsetOf(rows.slots[row]) == 0) {
        ZeroV(kv.layout, kv.VTile(BlockOf(rows.slots[row]), head), in_block);
      }
      AppendRun(kv, rows, head, row, count);
    }
    row += count;
  }
}

}  // namespace quire
