// Compiled once per instruction set by Highway. Invariant: integer sums are exact and every f32
// operation is explicit, so all sets give the same bits.
#include "runtime/kernels/attention_int.h"

#include <cmath>

#include "runtime/kernels/hwy_targets.h"
#include "runtime/tensor/half.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/attention_int.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<D>;
using DU = hn::RebindToUnsigned<D>;
using D16 = hn::Repartition<int16_t, D>;  // pairs
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;
using V16 = hn::Vec<D16>;
constexpr int32_t kLanes = HWY_MAX_LANES_D(D);
constexpr uint32_t kTinyBits = 0x0d800000, kInfBits = 0x7f800000;  // 2^-100

// acc += sum of the two products of each pair. Instructions of their own, see attention_tiles.cc.
HWY_INLINE void Accumulate(V16 a, V16 b, VI& acc) {
#if HWY_TARGET == HWY_AVX3  // the level has VNNI
  asm("vpdpwssd %2, %1, %0" : "+v"(acc.raw) : "v"(a.raw), "v"(b.raw));
#elif HWY_TARGET == HWY_AVX2
  const VI product = hn::WidenMulPairwiseAdd(DI(), a, b);
  asm volatile("vpaddd %1, %0, %0" : "+x"(acc.raw) : "x"(product.raw));
#else
  acc = hn::Add(acc, hn::WidenMulPairwiseAdd(DI(), a, b));
#endif
}

// a * b + c with one rounding.
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

// 1 / scale of a row whose largest magnitude has these bits; 0 if the row becomes 0.
HWY_INLINE float InverseScale(uint32_t amax_bits, float limit, float* scale) {
  if (amax_bits < kTinyBits || amax_bits >= kInfBits) {
    *scale = amax_bits < kTinyBits ? 0.0f : __builtin_nanf("");
    return 0.0f;
  }
  float amax;
  __builtin_memcpy(&amax, &amax_bits, sizeof(amax));
  *scale = amax / limit;
  return limit / amax;
}

HWY_INLINE hn::Vec<DU> Magnitude(V x) {
  return hn::And(hn::BitCast(DU(), x), hn::Set(DU(), 0x7fffffff));
}

HWY_INLINE void StoreRounded(V x, V factor, int16_t* q) {
  const hn::Rebind<int16_t, D> half;
  hn::StoreU(hn::DemoteTo(half, hn::NearestInt(hn::Mul(x, factor))), half, q);
}

void Quantize(const float* x, int32_t count, int32_t limit, int16_t* q, float* scale) {
  const D d;
  const DU du;
  hn::Vec<DU> top = hn::Zero(du);
  int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) top = hn::Max(top, Magnitude(hn::LoadU(d, x + i)));
  uint32_t amax_bits = hn::ReduceMax(du, top);
  for (; i < count; ++i) {
    uint32_t bits;
    __builtin_memcpy(&bits, x + i, sizeof(bits));
    bits &= 0x7fffffff;
    if (bits > amax_bits) amax_bits = bits;
  }
  const float inverse = InverseScale(amax_bits, static_cast<float>(limit), scale);
  if (inverse == 0.0f) {
    __builtin_memset(q, 0, sizeof(*q) * static_cast<size_t>(count));
    return;
  }
  for (i = 0; i + kLanes <= count; i += kLanes)
    StoreRounded(hn::LoadU(d, x + i), hn::Set(d, inverse), q + i);
  for (; i < count; ++i) q[i] = static_cast<int16_t>(__builtin_rintf(x[i] * inverse));
}

HWY_INLINE V LoadBf16(const uint16_t* p) {
  const hn::Rebind<uint16_t, D> half;
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(DU(), hn::LoadU(half, p))));
}

void QuantizeWeights(const WeightRows& weights, int16_t* q, float* scale) {
  constexpr int32_t kVecs = kBlockTokens / kLanes;
  const D d;
  const DU du;
  V token[kVecs];
  for (int32_t i = 0; i < kVecs; ++i) token[i] = LoadBf16(weights.token_scales + i * kLanes);
  const float limit = static_cast<float>(weights.limit);
  const float* p = weights.p;
  for (int32_t row = 0; row < weights.rows; ++row, p += kBlockTokens, q += kBlockTokens) {
    V w[kVecs];
    hn::Vec<DU> top = hn::Zero(du);
    for (int32_t i = 0; i < kVecs; ++i) {
      const V x = hn::LoadU(d, p + i * kLanes);
      w[i] = hn::IfThenElseZero(hn::Ne(x, hn::Zero(d)), hn::Mul(x, token[i]));
      top = hn::Max(top, Magnitude(w[i]));
    }
    const float inverse = InverseScale(hn::ReduceMax(du, top), limit, scale + row);
    if (inverse == 0.0f) {
      __builtin_memset(q, 0, sizeof(*q) * kBlockTokens);
      continue;
    }
    const V factor = hn::Set(d, inverse);
    for (int32_t i = 0; i < kVecs; ++i) StoreRounded(w[i], factor, q + i * kLanes);
  }
}

void Widen(const std::byte* src, int32_t count, int16_t* dst) {
  const D16 d;
  const hn::Rebind<int8_t, D16> bytes;
  const int8_t* s = reinterpret_cast<const int8_t*>(src);
  const int32_t lanes = 2 * kLanes;
  int32_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(bytes, s + i)), d, dst + i);
  for (; i < count; ++i) dst[i] = s[i];
}

template <bool kS16>
HWY_INLINE V16 LoadPairs(const std::byte* b, int64_t pair) {
  const D16 d;
  if constexpr (kS16) {
    return hn::LoadU(d, reinterpret_cast<const int16_t*>(b) + 2 * pair);
  } else {
    const hn::Rebind<int8_t, D16> bytes;
    return hn::PromoteTo(d, hn::LoadU(bytes, reinterpret_cast<const int8_t*>(b) + 2 * pair));
  }
}

HWY_INLINE int32_t PairAt(const int16_t* a) {
  int32_t pair;
  __builtin_memcpy(&pair, a, sizeof(pair));
  return pair;
}

template <int32_t kRows, int32_t kVecs, bool kS16, bool kAdd>
HWY_INLINE void ProductBlock(const IntProduct& p, int32_t row, int32_t column) {
  const D d;
  const DI di;
  // Unrolled by order: accumulators that a loop indexes would stay in memory.
  VI acc[kRows][kVecs];
#pragma GCC unroll 8
  for (int32_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int32_t j = 0; j < kVecs; ++j) acc[r][j] = hn::Zero(di);
  }
  const int16_t* a = p.a + static_cast<int64_t>(row) * p.lda;
  const char* wanted = reinterpret_cast<const char*>(p.prefetch.start);
  int32_t wanted_rows = row == 0 && column == 0 ? p.prefetch.rows : 0;
  int64_t pair = column;
  for (int32_t k = 0; k < p.depth; k += 2, pair += p.ldb) {
    if (wanted_rows > 0) {
      for (int32_t byte = 0; byte < p.prefetch.row_bytes; byte += 64)
        __builtin_prefetch(wanted + byte);
      wanted += p.prefetch.stride;
      --wanted_rows;
    }
    V16 x[kRows];
#pragma GCC unroll 8
    for (int32_t r = 0; r < kRows; ++r)
      x[r] = hn::BitCast(D16(), hn::Set(di, PairAt(a + r * p.lda + k)));
#pragma GCC unroll 8
    for (int32_t j = 0; j < kVecs; ++j) {
      const V16 y = LoadPairs<kS16>(p.b, pair + j * kLanes);
#pragma GCC unroll 8
      for (int32_t r = 0; r < kRows; ++r) Accumulate(x[r], y, acc[r][j]);
    }
  }
#pragma GCC unroll 8
  for (int32_t r = 0; r < kRows; ++r) {
    float* c = p.c + static_cast<int64_t>(row + r) * p.ldc + column;
    const V scale = hn::Set(d, p.row_scale[row + r]);
#pragma GCC unroll 8
    for (int32_t j = 0; j < kVecs; ++j) {
      const V sum = hn::ConvertTo(d, acc[r][j]);
      V result;
      if constexpr (kAdd) {
        result = Fma(sum, scale, hn::LoadU(d, c + j * kLanes));
      } else {
        const V column_scale = LoadBf16(p.column_scale + column + j * kLanes);
        result = hn::Mul(hn::Mul(sum, scale), column_scale);
      }
      hn::StoreU(result, d, c + j * kLanes);
    }
  }
}

template <int32_t kRows, bool kS16, bool kAdd>
void ProductRows(const IntProduct& p, int32_t row, int32_t width) {
  int32_t column = 0;
  for (; column + 4 * kLanes <= width; column += 4 * kLanes)
    ProductBlock<kRows, 4, kS16, kAdd>(p, row, column);
  for (; column < width; column += kLanes) ProductBlock<kRows, 1, kS16, kAdd>(p, row, column);
}

template <bool kS16, bool kAdd>
void ProductOf(const IntProduct& p, int32_t width) {
  constexpr int32_t kMaxRows = kLanes == 16 ? 6 : 2;
  const int32_t passes = (p.rows + kMaxRows - 1) / kMaxRows;
  for (int32_t pass = 0; pass < passes; ++pass) {
    const int32_t row = p.rows * pass / passes;
    switch (p.rows * (pass + 1) / passes - row) {
      case 1:
        ProductRows<1, kS16, kAdd>(p, row, width);
        break;
      case 2:
        ProductRows<2, kS16, kAdd>(p, row, width);
        break;
      case 3:
        if constexpr (kMaxRows > 2) ProductRows<3, kS16, kAdd>(p, row, width);
        break;
      case 4:
        if constexpr (kMaxRows > 2) ProductRows<4, kS16, kAdd>(p, row, width);
        break;
      case 5:
        if constexpr (kMaxRows > 2) ProductRows<5, kS16, kAdd>(p, row, width);
        break;
      case 6:
        if constexpr (kMaxRows > 2) ProductRows<6, kS16, kAdd>(p, row, width);
        break;
    }
  }
}

void Product(const IntProduct& p) {
  const int32_t width = p.width / 16 * 16;
  if (width > 0) {
    if (p.column_scale == nullptr) {
      p.b_s16 ? ProductOf<true, true>(p, width) : ProductOf<false, true>(p, width);
    } else {
      p.b_s16 ? ProductOf<true, false>(p, width) : ProductOf<false, false>(p, width);
    }
  }
  if (width == p.width) return;
  IntProduct tail = p;
  const int32_t pair_bytes = p.b_s16 ? 4 : 2;
  tail.b += int64_t{width} * pair_bytes;
  if (tail.column_scale != nullptr) tail.column_scale += width;
  tail.c += width;
  tail.width -= width;
  SequentialIntProduct(tail);
}

}  // namespace

const IntTiles& TilesOfIntegers() {
  static constexpr IntTiles kTiles = {Quantize, QuantizeWeights, Widen, Product};
  return kTiles;
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

const IntTiles& IntTilesFor(IsaLevel isa) {
#if HWY_TARGETS & HWY_AVX3
  if (isa >= IsaLevel::kAvx512) return N_AVX3::TilesOfIntegers();
#endif
#if HWY_TARGETS & HWY_AVX2
  if (isa >= IsaLevel::kAvx2) return N_AVX2::TilesOfIntegers();
#endif
  return HWY_NAMESPACE::TilesOfIntegers();
}

void SequentialIntProduct(const IntProduct& p) {
  const int8_t* bytes = reinterpret_cast<const int8_t*>(p.b);
  const int16_t* words = reinterpret_cast<const int16_t*>(p.b);
  for (int32_t row = 0; row < p.rows; ++row) {
    for (int32_t column = 0; column < p.width; ++column) {
      int32_t sum = 0;
      for (int32_t k = 0; k < p.depth; ++k) {
        const int64_t index = 2 * (int64_t{k / 2} * p.ldb + column) + k % 2;
        sum += p.a[int64_t{row} * p.lda + k] * (p.b_s16 ? words[index] : bytes[index]);
      }
      float& c = p.c[int64_t{row} * p.ldc + column];
      c = p.column_scale == nullptr ? std::fmaf(static_cast<float>(sum), p.row_scale[row], c)
                                    : static_cast<float>(sum) * p.row_scale[row] *
                                          BFloat16ToFloat(p.column_scale[column]);
    }
  }
}

}  // namespace quire
#endif  // HWY_ONCE
