// Compiled once per instruction set by Highway. Invariants: the same operations on every element in
// the same order on all sets (explicit fma, sums over 16 lanes then halves), so the bits are equal;
// a NaN in a row reaches its weights and its sum.
#include "runtime/kernels/attention_tiles.h"

#include <cmath>
#include <limits>

#include "runtime/kernels/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/attention_tiles.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "runtime/kernels/attention_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace {

void Scale(const float* src, int32_t count, float factor, float* dst) {
  for (int32_t i = 0; i < count; ++i) dst[i] = src[i] * factor;
}

void Widen(const std::byte* src, int32_t depth, int32_t width, int32_t columns, float* dst) {
  const D d;
  const DU du;
  const auto high = hn::Set(du, 0xffff0000u);
  const uint32_t* pairs = reinterpret_cast<const uint32_t*>(src);
  for (int32_t k = 0; k < depth; k += 2, pairs += width, dst += 2 * width) {
    int32_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) {
      const auto x = hn::LoadU(du, pairs + i);
      hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(x)), d, dst + i);
      hn::StoreU(hn::BitCast(d, hn::And(x, high)), d, dst + width + i);
    }
    for (; i < columns; ++i) {
      const uint32_t low = pairs[i] << 16, up = pairs[i] & 0xffff0000u;
      __builtin_memcpy(dst + i, &low, sizeof(low));
      __builtin_memcpy(dst + width + i, &up, sizeof(up));
    }
  }
}

// kRows rows by kVecs vectors of columns; one accumulator per element, ascending k.
template <int32_t kRows, int32_t kVecs>
HWY_INLINE void ProductBlock(const TileProduct& p, int32_t row, int32_t column) {
  const D d;
  const DU du;
  V acc[kRows][kVecs];
  for (int32_t r = 0; r < kRows; ++r) {
    for (int32_t j = 0; j < kVecs; ++j) acc[r][j] = hn::Zero(d);
  }
  const float* a = p.a + static_cast<int64_t>(row) * p.lda;
  // A word is a pair of two k.
  const uint32_t* b = reinterpret_cast<const uint32_t*>(p.b) + column;
  const char* wanted = reinterpret_cast<const char*>(p.prefetch.start);
  int32_t wanted_rows = row == 0 && column == 0 ? p.prefetch.rows : 0;
  const auto high = hn::Set(du, 0xffff0000u);
  for (int32_t k = 0; k < p.depth; k += 2, b += p.ldb) {
    if (wanted_rows > 0) {
      for (int32_t byte = 0; byte < p.prefetch.row_bytes; byte += 64)
        __builtin_prefetch(wanted + byte);
      wanted += p.prefetch.stride;
      --wanted_rows;
    }
    // The even and the odd k of a pair one after the other: half the broadcasts live at a time, no
    // spills.
    for (int32_t half = 0; half < 2; ++half) {
      V x[kRows];
      for (int32_t r = 0; r < kRows; ++r) x[r] = hn::Set(d, a[r * p.lda + k + half]);
      for (int32_t j = 0; j < kVecs; ++j) {
        const auto word = hn::LoadU(du, b + j * kLanes);
        const V value = hn::BitCast(d, half == 0 ? hn::ShiftLeft<16>(word) : hn::And(word, high));
        for (int32_t r = 0; r < kRows; ++r) Accumulate(x[r], value, acc[r][j]);
      }
    }
  }
  for (int32_t r = 0; r < kRows; ++r) {
    float* c = p.c + static_cast<int64_t>(row + r) * p.ldc + column;
    for (int32_t j = 0; j < kVecs; ++j, c += kLanes) {
      hn::StoreU(p.add ? hn::Add(acc[r][j], hn::LoadU(d, c)) : acc[r][j], d, c);
    }
  }
}

template <int32_t kRows>
void ProductRows(const TileProduct& p, int32_t row) {
  constexpr int32_t kVecs = kRows == 1 && kLanes < 16 ? 8 : 4;
  int32_t column = 0;
  for (; column + kVecs * kLanes <= p.width; column += kVecs * kLanes)
    ProductBlock<kRows, kVecs>(p, row, column);
  for (; column + kLanes <= p.width; column += kLanes) ProductBlock<kRows, 1>(p, row, column);
}

void Product(const TileProduct& p) {
  constexpr int32_t kMaxRows = kLanes == 16 ? 6 : 3;
  const int32_t passes = (p.rows + kMaxRows - 1) / kMaxRows;
  for (int32_t pass = 0; pass < passes; ++pass) {
    const int32_t row = p.rows * pass / passes;
    switch (p.rows * (pass + 1) / passes - row) {
      case 1:
        ProductRows<1>(p, row);
        break;
      case 2:
        ProductRows<2>(p, row);
        break;
      case 3:
        ProductRows<3>(p, row);
        break;
      case 4:
        if constexpr (kMaxRows > 3) ProductRows<4>(p, row);
        break;
      case 5:
        if constexpr (kMaxRows > 3) ProductRows<5>(p, row);
        break;
      case 6:
        if constexpr (kMaxRows > 3) ProductRows<6>(p, row);
        break;
    }
  }
}

HWY_INLINE void SoftmaxRow(float* s, int32_t visible, int32_t row, const AttentionState& state) {
  const D d;
  V v[kTileVecs];
  for (int32_t i = 0; i < kTileVecs; ++i) v[i] = hn::LoadU(d, s + i * kLanes);
  if (visible < kBlockTokens) {  // select, never add: what a masked token holds must vanish
    const V limit = hn::Set(d, static_cast<float>(visible));
    for (int32_t i = 0; i < kTileVecs; ++i) {
      const V token = hn::Iota(d, static_cast<float>(i * kLanes));
      v[i] = hn::IfThenElse(hn::Lt(token, limit), v[i], hn::Set(d, kNegInf));
    }
  }
  SoftmaxStep(v, s, row, state);
}

void Softmax(const SoftmaxTile& tile, const AttentionState& state) {
  int32_t visible = tile.visible;
  for (int32_t row = 0; row < tile.rows; ++visible) {
    for (int32_t i = 0; i < tile.group && row < tile.rows; ++i, ++row) {
      SoftmaxRow(tile.s + int64_t{row} * kBlockTokens, visible, row, state);
    }
  }
}

void Fold(int32_t rows, const AttentionState& state, const AttentionState& chunk) {
  const D d;
  for (int32_t row = 0; row < rows; ++row) {
    const float m0 = state.m[row], m1 = chunk.m[row];
    if (m1 == kNegInf && chunk.l[row] == 0.0f) continue;
    if (m0 == kNegInf && state.l[row] == 0.0f) {  // as if this chunk were the row's first
      state.m[row] = m1;
      state.l[row] = chunk.l[row];
      const float* first = chunk.o + int64_t{row} * chunk.stride;
      __builtin_memcpy(state.o + int64_t{row} * state.stride, first, sizeof(float) * state.stride);
      continue;
    }
    const float top = m0 > m1 ? m0 : m1;
    const float a = m0 == kNegInf ? 0.0f : Exp2Of(m0 - top);
    const float b = Exp2Of(m1 - top);
    state.m[row] = top;
    state.l[row] = __builtin_fmaf(chunk.l[row], b, state.l[row] * a);
    float* o = state.o + int64_t{row} * state.stride;
    const float* c = chunk.o + int64_t{row} * chunk.stride;
    for (int32_t i = 0; i < state.stride; i += kLanes) {
      const V old = hn::Mul(hn::LoadU(d, o + i), hn::Set(d, a));
      hn::StoreU(Fma(hn::LoadU(d, c + i), hn::Set(d, b), old), d, o + i);
    }
  }
}

void Finish(int32_t row, int32_t dim, const AttentionState& state, float* out) {
  const float l = state.l[row];
  const float* o = state.o + int64_t{row} * state.stride;
  if (l == 0.0f) {
    for (int32_t i = 0; i < dim; ++i) out[i] = 0.0f;
    return;
  }
  for (int32_t i = 0; i < dim; ++i) out[i] = o[i] / l;
}

void Exp2Array(const float* x, int32_t count, float* y) {
  const D d;
  for (int32_t i = 0; i < count; i += kLanes) hn::StoreU(Exp2(hn::LoadU(d, x + i)), d, y + i);
}

}  // namespace

const AttentionTiles& Tiles() {
  static constexpr AttentionTiles kTiles = {Scale, Widen,  Product,  Softmax,
                                            Fold,  Finish, Exp2Array};
  return kTiles;
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

const AttentionTiles& AttentionTilesFor(IsaLevel isa) {
#if HWY_TARGETS & HWY_AVX3
  if (isa >= IsaLevel::kAvx512) return N_AVX3::Tiles();
#endif
#if HWY_TARGETS & HWY_AVX2
  if (isa >= IsaLevel::kAvx2) return N_AVX2::Tiles();
#endif
  return HWY_NAMESPACE::Tiles();
}

void SequentialProduct(const TileProduct& p) {
  const float* b = reinterpret_cast<const float*>(p.b);
  for (int32_t row = 0; row < p.rows; ++row) {
    for (int32_t column = 0; column < p.width; ++column) {
      float sum = 0.0f;
      for (int32_t k = 0; k < p.depth; ++k) {
        sum = std::fmaf(p.a[int64_t{row} * p.lda + k], b[int64_t{k} * p.ldb + column], sum);
      }
      float& c = p.c[int64_t{row} * p.ldc + column];
      c = p.add ? sum + c : sum;
    }
  }
}

}  // namespace quire
#endif  // HWY_ONCE
