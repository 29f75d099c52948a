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

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using DU = hn::RebindToUnsigned<D>;
using V = hn::Vec<D>;
constexpr int32_t kLanes = HWY_MAX_LANES_D(D);
constexpr int32_t kTileVecs = kBlockTokens / kLanes;
constexpr float kNegInf = -__builtin_inff();

// a * b + c with one rounding, also where the processor level has no fma.
HWY_INLINE V Fma(V a, V b, V c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  const D d;
  HWY_ALIGN float x[kLanes], y[kLanes], z[kLanes];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (int32_t i = 0; i < kLanes; ++i) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return hn::Load(d, z);
#endif
}

// acc += a * b. As an instruction of its own: GCC otherwise reorders the chains and keeps
// accumulators in memory.
HWY_INLINE void Accumulate(V a, V b, V& acc) {
#if HWY_TARGET == HWY_AVX2  // with 16 registers; AVX-512 code is better left to the compiler
  asm volatile("vfmadd231ps %2, %1, %0" : "+x"(acc.raw) : "x"(a.raw), "x"(b.raw));
#else
  acc = Fma(a, b, acc);
#endif
}

// 2^x for x <= 127, relative error < 1.6e-7; 0 below -126, NaN for NaN. Adding 1.5 * 2^23 rounds to
// an integer whose low bits, biased, become the exponent.
HWY_INLINE V Exp2(V x) {
  const D d;
  const V magic = hn::Set(d, 12582912.0f + 127.0f);
  const V t = hn::Add(x, magic);
  const V r = hn::Sub(x, hn::Sub(t, magic));
  V p = hn::Set(d, 0x1.5bba14p-10f);
  p = Fma(p, r, hn::Set(d, 0x1.3cea88p-7f));
  p = Fma(p, r, hn::Set(d, 0x1.c6b752p-5f));
  p = Fma(p, r, hn::Set(d, 0x1.ebf9bcp-3f));
  p = Fma(p, r, hn::Set(d, 0x1.62e42ap-1f));
  p = Fma(p, r, hn::Set(d, 1.0f));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(DU(), t)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), hn::Mul(p, power));
}

HWY_INLINE float Exp2Of(float x) { return hn::GetLane(Exp2(hn::Set(D(), x))); }

// Sum of four lanes as (0 + 2) + (1 + 3).
HWY_INLINE float SumOf4(hn::Vec<hn::FixedTag<float, 4>> v) {
  const hn::FixedTag<float, 4> d4;
  HWY_ALIGN float lane[4];
  hn::Store(v, d4, lane);
  return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

// Canonical sum: element i goes to lane i mod 16, ascending; then lanes 8, 4, 2 and 1 apart are
// added.
HWY_INLINE float CanonicalSum(const V* v) {
  V lane[16 / kLanes];
  for (int32_t i = 0; i < 16 / kLanes; ++i) lane[i] = v[i];
  for (int32_t i = 16 / kLanes; i < kTileVecs; ++i) {
    lane[i % (16 / kLanes)] = hn::Add(lane[i % (16 / kLanes)], v[i]);
  }
#if HWY_MAX_BYTES == 64
  const hn::FixedTag<float, 8> d8;
  const hn::FixedTag<float, 4> d4;
  const auto by8 = hn::Add(hn::LowerHalf(d8, lane[0]), hn::UpperHalf(d8, lane[0]));
  return SumOf4(hn::Add(hn::LowerHalf(d4, by8), hn::UpperHalf(d4, by8)));
#elif HWY_MAX_BYTES == 32
  const hn::FixedTag<float, 4> d4;
  const V by8 = hn::Add(lane[0], lane[1]);
  return SumOf4(hn::Add(hn::LowerHalf(d4, by8), hn::UpperHalf(d4, by8)));
#else
  return SumOf4(hn::Add(hn::Add(lane[0], lane[2]), hn::Add(lane[1], lane[3])));
#endif
}

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

HWY_INLINE void ScaleBy(float* o, int32_t stride, float factor) {
  const D d;
  const V f = hn::Set(d, factor);
  for (int32_t i = 0; i < stride; i += kLanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, o + i), f), d, o + i);
}

HWY_INLINE bool AnyNaN(const V* v) {
  auto nan = hn::IsNaN(v[0]);
  for (int32_t i = 1; i < kTileVecs; ++i) nan = hn::Or(nan, hn::IsNaN(v[i]));
  return !hn::AllFalse(D(), nan);
}

// The maximum moves only when it grows by more than 8, so weights stay below 2^8 and o is seldom
// rescaled.
HWY_INLINE void SoftmaxRow(float* s, int32_t visible, int32_t row, const AttentionState& state) {
  const D d;
  float* m = state.m + row;
  float* l = state.l + row;
  V v[kTileVecs];
  for (int32_t i = 0; i < kTileVecs; ++i) v[i] = hn::LoadU(d, s + i * kLanes);
  if (visible < kBlockTokens) {  // select, never add: what a masked token holds must vanish
    const V limit = hn::Set(d, static_cast<float>(visible));
    for (int32_t i = 0; i < kTileVecs; ++i) {
      const V token = hn::Iota(d, static_cast<float>(i * kLanes));
      v[i] = hn::IfThenElse(hn::Lt(token, limit), v[i], hn::Set(d, kNegInf));
    }
  }
  V top = v[0];
  for (int32_t i = 1; i < kTileVecs; ++i) top = hn::Max(top, v[i]);
  const float x = hn::ReduceMax(d, top);
  if (x == kNegInf && !AnyNaN(v)) {
    for (int32_t i = 0; i < kTileVecs; ++i) hn::StoreU(hn::Zero(d), d, s + i * kLanes);
    return;
  }
  if (x > *m + 8.0f) {
    if (*m != kNegInf) {
      const float alpha = Exp2Of(*m - x);
      *l *= alpha;
      ScaleBy(state.o + int64_t{row} * state.stride, state.stride, alpha);
    }
    *m = x;
  }
  const V base = hn::Set(d, *m);
  for (int32_t i = 0; i < kTileVecs; ++i) {
    v[i] = Exp2(hn::Sub(v[i], base));
    hn::StoreU(v[i], d, s + i * kLanes);
  }
  *l += CanonicalSum(v);
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
