// Invariants: no store touches an element of another row's slot (two workers may fill one block),
// so V, whose tokens interleave in pairs, is written pair-wise only where one call owns both
// tokens.
#include "runtime/kernels/kv_append.h"

#include <algorithm>
#include <cstring>

#include "absl/log/check.h"
#include "runtime/base/cpu_features.h"
#include "runtime/kernels/hadamard.h"
#include "runtime/kernels/kv_append_rows.h"

namespace quire {
namespace {

constexpr int32_t kMaxPairs = 128;  // head_dim / 2
constexpr int32_t kMaxDim = 2 * kMaxPairs;
constexpr int32_t kRowsAtOnce = 8;  // of K, kept packed before they become columns

// Number of rows from `row` on that lie in its block, in consecutive slots.
int32_t RunInBlock(std::span<const KvSlot> slots, int32_t row) {
  const int32_t first = static_cast<int32_t>(slots[row]);
  const int32_t limit = std::min<int32_t>(kBlockTokens - OffsetOf(slots[row]),
                                          static_cast<int32_t>(slots.size()) - row);
  int32_t count = 1;
  while (count < limit && static_cast<int32_t>(slots[row + count]) == first + count) ++count;
  return count;
}

// Zeroes V of tokens [written, 64) of a block: the ones that this step does not write.
void ZeroV(const KvLayout& layout, std::byte* tile, int32_t written) {
  const int32_t odd = written % layout.pack;
  // Groups left alone or cleared by element.
  const int32_t whole = written / layout.pack + (odd != 0);
  for (int32_t panel = 0; panel < layout.num_panels(); ++panel) {
    const size_t start = layout.VIndex(0, panel * KvLayout::kPanelDims) * layout.element_bytes();
    const size_t row_bytes =
        static_cast<size_t>(layout.PanelWidth(panel)) * layout.pack * layout.element_bytes();
    const size_t rows = kBlockTokens / layout.pack;
    std::memset(tile + start + whole * row_bytes, 0, (rows - whole) * row_bytes);
  }
  if (layout.scaled()) {
    const size_t kept = static_cast<size_t>(written) * sizeof(uint16_t);
    std::memset(tile + layout.VScaleOffset() + kept, 0, layout.scale_bytes() - kept);
  }
  if (odd == 0) return;
  for (int32_t dim = 0; dim < layout.head_dim; ++dim) {
    std::memset(tile + layout.VIndex(written, dim) * layout.element_bytes(), 0,
                layout.element_bytes());
  }
}

// `count` rows that go to tokens [token, token + count) of one head's tiles.
struct Run {
  const float* k;
  const float* v;
  int64_t stride;
  std::byte* tiles;
  int32_t token, count;
};

void AppendF32(const KvLayout& layout, const Run& run) {
  float* k_tile = reinterpret_cast<float*>(run.tiles) + run.token;
  float* v_tile = reinterpret_cast<float*>(run.tiles + layout.tile_bytes());
  for (int32_t dim = 0; dim < layout.head_dim; ++dim) {
    for (int32_t i = 0; i < run.count; ++i)
      k_tile[dim * kBlockTokens + i] = run.k[i * run.stride + dim];
  }
  for (int32_t panel = 0; panel < layout.num_panels(); ++panel) {
    const int32_t dim = panel * KvLayout::kPanelDims;
    for (int32_t i = 0; i < run.count; ++i) {
      std::memcpy(v_tile + layout.VIndex(run.token + i, dim), run.v + i * run.stride + dim,
                  layout.PanelWidth(panel) * sizeof(float));
    }
  }
}

void AppendKBf16(const KvLayout& layout, const KvAppendRows& rows, const Run& run) {
  uint32_t packed[kRowsAtOnce][kMaxPairs];
  const int32_t pairs = layout.head_dim / 2;
  for (int32_t begin = 0; begin < run.count; begin += kRowsAtOnce) {
    const int32_t count = std::min(kRowsAtOnce, run.count - begin);
    for (int32_t i = 0; i < count; ++i)
      rows.pack_neighbours(run.k + (begin + i) * run.stride, pairs, packed[i]);
    uint32_t* column = reinterpret_cast<uint32_t*>(run.tiles) + run.token + begin;
    for (int32_t pair = 0; pair < pairs; ++pair, column += kBlockTokens) {
      for (int32_t i = 0; i < count; ++i) column[i] = packed[i][pair];
    }
  }
}

void AppendVBf16(const KvLayout& layout, const KvAppendRows& rows, const Run& run) {
  uint16_t* v_tile = reinterpret_cast<uint16_t*>(run.tiles + layout.tile_bytes());
  for (int32_t i = 0; i < run.count;) {
    const int32_t token = run.token + i;
    const bool whole_pair = token % 2 == 0 && i + 1 < run.count;
    const float* v = run.v + i * run.stride;
    for (int32_t dim = 0; dim < layout.head_dim; dim += KvLayout::kPanelDims) {
      const int32_t width = layout.PanelWidth(dim / KvLayout::kPanelDims);
      uint16_t* halves = v_tile + layout.VIndex(token, dim);
      if (whole_pair) {
        rows.pack_rows(v + dim, v + run.stride + dim, width, reinterpret_cast<uint32_t*>(halves));
      } else {
        uint32_t packed[KvLayout::kPanelDims];
        rows.pack_rows(v + dim, v + dim, width, packed);
        for (int32_t j = 0; j < width; ++j) halves[2 * j] = static_cast<uint16_t>(packed[j]);
      }
    }
    i += whole_pair ? 2 : 1;
  }
}

// A word of K is two dims of one token. Keys have outliers, always in the same dims: transformed,
// they share them.
template <typename Integer>
void AppendKScaled(const KvLayout& layout, const KvAppendRows& rows, const Run& run) {
  float key[kMaxDim];
  int16_t q[kMaxDim];
  Integer packed[kRowsAtOnce][kMaxDim];
  uint16_t* scales = reinterpret_cast<uint16_t*>(run.tiles + layout.KScaleOffset());
  for (int32_t begin = 0; begin < run.count; begin += kRowsAtOnce) {
    const int32_t count = std::min(kRowsAtOnce, run.count - begin);
    const int32_t token = run.token + begin;
    for (int32_t i = 0; i < count; ++i) {
      std::copy_n(run.k + (begin + i) * run.stride, layout.head_dim, key);
      HadamardInPlace(key, layout.head_dim);
      scales[token + i] = rows.quantize(key, layout.head_dim, layout.max_integer(), q);
      std::copy_n(q, layout.head_dim, packed[i]);
    }
    Integer* column = reinterpret_cast<Integer*>(run.tiles) + 2 * token;
    for (int32_t dim = 0; dim < layout.head_dim; dim += 2, column += 2 * kBlockTokens) {
      for (int32_t i = 0; i < count; ++i)
        std::memcpy(column + 2 * i, &packed[i][dim], 2 * sizeof(Integer));
    }
  }
}

// A word of V is one dim of two tokens; each half is its token's own.
template <typename Integer>
void AppendVScaled(const KvLayout& layout, const KvAppendRows& rows, const Run& run) {
  int16_t q[kMaxDim];
  std::byte* v_tile = run.tiles + layout.tile_bytes();
  uint16_t* scales = reinterpret_cast<uint16_t*>(v_tile + layout.VScaleOffset());
  for (int32_t i = 0; i < run.count; ++i) {
    const int32_t token = run.token + i;
    scales[token] = rows.quantize(run.v + i * run.stride, layout.head_dim, layout.max_integer(), q);
    for (int32_t dim = 0; dim < layout.head_dim; dim += KvLayout::kPanelDims) {
      Integer* element = reinterpret_cast<Integer*>(v_tile) + layout.VIndex(token, dim);
      const int32_t width = layout.PanelWidth(dim / KvLayout::kPanelDims);
      for (int32_t j = 0; j < width; ++j) element[2 * j] = static_cast<Integer>(q[dim + j]);
    }
  }
}

void AppendRun(const KvLayout& layout, const KvAppendRows& rows, const Run& run) {
  switch (layout.dtype) {
    case KvDType::kF32:
      return AppendF32(layout, run);
    case KvDType::kBF16:
      AppendKBf16(layout, rows, run);
      return AppendVBf16(layout, rows, run);
    case KvDType::kInt8:
      AppendKScaled<int8_t>(layout, rows, run);
      return AppendVScaled<int8_t>(layout, rows, run);
    case KvDType::kInt16:
      AppendKScaled<int16_t>(layout, rows, run);
      return AppendVScaled<int16_t>(layout, rows, run);
  }
}

}  // namespace

void AppendKv(const KvLayerView& kv, const KvRows& rows, const KvAppendPart& part) {
  static const KvAppendRows& row_code = KvAppendRowsFor(ActiveIsa());
  const KvLayout& layout = kv.layout;
  DCHECK_LE(layout.head_dim, kMaxDim);
  for (int32_t row = part.row_begin; row < part.row_end;) {
    const BlockId block = BlockOf(rows.slots[row]);
    const int32_t offset = OffsetOf(rows.slots[row]);
    const int32_t in_block = RunInBlock(rows.slots, row);
    const int32_t count = std::min(in_block, part.row_end - row);
    for (int32_t head = part.head_begin; head < part.head_end; ++head) {
      if (offset == 0) ZeroV(layout, kv.VTile(block, head), in_block);
      const int64_t source = row * rows.stride + int64_t{head} * layout.head_dim;
      const Run run = {.k = rows.k + source,
                       .v = rows.v + source,
                       .stride = rows.stride,
                       .tiles = kv.KTile(block, head),
                       .token = offset,
                       .count = count};
      AppendRun(layout, row_code, run);
    }
    row += count;
  }
}

}  // namespace quire
