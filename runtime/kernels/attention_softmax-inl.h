// Per instruction set, like the units that include it: vector types, exp2 and the online softmax of
// one row, shared by the plain kernel and its variants so that both give the same bits. Include
// after hwy/highway.h, inside no namespace.
#if defined(QUIRE_ATTENTION_SOFTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_ATTENTION_SOFTMAX_INL_H
#undef QUIRE_ATTENTION_SOFTMAX_INL_H
#else
#define QUIRE_ATTENTION_SOFTMAX_INL_H
#endif

#include "hwy/highway.h"
#include "runtime/kernels/attention_tiles.h"

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

// One row's online softmax over a tile: v are its scores with -inf where masked, weights go to s.
// The maximum moves only when it grows by more than 8, so weights stay below 2^8 and o is seldom
// rescaled.
HWY_INLINE void SoftmaxStep(V* v, float* s, int32_t row, const AttentionState& state) {
  const D d;
  float* m = state.m + row;
  float* l = state.l + row;
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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
