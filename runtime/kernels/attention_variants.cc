// Compiled once per instruction set by Highway. Invariants as in attention_tiles.cc; a mask selects
// and never adds, so what an invisible token holds vanishes.
#include "runtime/kernels/attention_variants.h"

#include "runtime/kernels/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/attention_variants.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "runtime/kernels/attention_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace {

// Relative error < 4e-7: x + x^3 P(x^2) near 0, else (1 - e) / (1 + e) with e = exp(-2 |x|).
HWY_INLINE V Tanh(V x) {
  const D d;
  const V size = hn::Abs(x), square = hn::Mul(x, x);
  V p = hn::Set(d, -5.70498872745e-3f);
  p = Fma(p, square, hn::Set(d, 2.06390887954e-2f));
  p = Fma(p, square, hn::Set(d, -5.37397155531e-2f));
  p = Fma(p, square, hn::Set(d, 1.33314422036e-1f));
  p = Fma(p, square, hn::Set(d, -3.33332819422e-1f));
  const V near = Fma(hn::Mul(p, square), x, x);
  const V one = hn::Set(d, 1.0f);
  const V e = Exp2(hn::Mul(size, hn::Set(d, -2.88539008f)));
  const V far = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.625f)), near, far);
}

HWY_INLINE void Mask(V* v, uint64_t seen) {
  const D d;
  for (int32_t i = 0; i < kTileVecs; ++i) {
    const uint64_t bits = seen >> (i * kLanes) & ((uint64_t{1} << kLanes) - 1);
    const auto mask = hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits));
    v[i] = hn::IfThenElse(mask, v[i], hn::Set(d, kNegInf));
  }
}

// -slope * |j - i|; `distance` is j - i of the tile's first token.
HWY_INLINE void AddAlibi(V* v, float slope, int32_t distance) {
  const D d;
  const V minus_slope = hn::Set(d, -slope);
  for (int32_t i = 0; i < kTileVecs; ++i) {
    const V away = hn::Abs(hn::Iota(d, static_cast<float>(distance + i * kLanes)));
    v[i] = Fma(minus_slope, away, v[i]);
  }
}

HWY_INLINE void AddRelative(V* v, const float* bias) {
  for (int32_t i = 0; i < kTileVecs; ++i) v[i] = hn::Add(v[i], hn::LoadU(D(), bias + i * kLanes));
}

HWY_INLINE void VariantRow(const VariantTile& tile, const ScoreTransform& t, int32_t token,
                           int32_t head, const AttentionState& state) {
  const D d;
  const int32_t row = token * tile.group + head;
  const int32_t distance = tile.tile_position - tile.position[token];
  float* s = tile.s + int64_t{row} * kBlockTokens;
  V v[kTileVecs];
  for (int32_t i = 0; i < kTileVecs; ++i) v[i] = hn::LoadU(d, s + i * kLanes);
  if (t.cap > 0) {
    const V cap = hn::Set(d, t.cap);
    for (int32_t i = 0; i < kTileVecs; ++i) v[i] = hn::Mul(Tanh(v[i]), cap);
  }
  if (t.slopes != nullptr) AddAlibi(v, t.slopes[head], distance);
  if (t.relative != nullptr) {
    const int32_t at = distance < t.relative_begin ? t.relative_begin
                       : distance > t.relative_end ? t.relative_end
                                                   : distance;
    AddRelative(v, t.relative + int64_t{head} * t.relative_stride + (at - t.relative_begin));
  }
  if (tile.seen[token] != ~uint64_t{0}) Mask(v, tile.seen[token]);
  SoftmaxStep(v, s, row, state);
}

void Softmax(const VariantTile& tile, const ScoreTransform& transform,
             const AttentionState& state) {
  for (int32_t token = 0; token < tile.tokens; ++token) {
    if (tile.seen[token] == 0) {
      float* s = tile.s + int64_t{token} * tile.group * kBlockTokens;
      for (int32_t i = 0; i < tile.group * kBlockTokens; i += kLanes)
        hn::StoreU(hn::Zero(D()), D(), s + i);
      continue;
    }
    for (int32_t head = 0; head < tile.group; ++head)
      VariantRow(tile, transform, token, head, state);
  }
}

void TanhArray(const float* x, int32_t count, float* y) {
  const D d;
  for (int32_t i = 0; i < count; i += kLanes) hn::StoreU(Tanh(hn::LoadU(d, x + i)), d, y + i);
}

}  // namespace

VariantSoftmax SoftmaxHere() { return Softmax; }
auto TanhHere() { return TanhArray; }

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

VariantSoftmax VariantSoftmaxFor(IsaLevel isa) {
#if HWY_TARGETS & HWY_AVX3
  if (isa >= IsaLevel::kAvx512) return N_AVX3::SoftmaxHere();
#endif
#if HWY_TARGETS & HWY_AVX2
  if (isa >= IsaLevel::kAvx2) return N_AVX2::SoftmaxHere();
#endif
  return HWY_NAMESPACE::SoftmaxHere();
}

void VariantTanh(IsaLevel isa, const float* x, int32_t count, float* y) {
#if HWY_TARGETS & HWY_AVX3
  if (isa >= IsaLevel::kAvx512) return N_AVX3::TanhHere()(x, count, y);
#endif
#if HWY_TARGETS & HWY_AVX2
  if (isa >= IsaLevel::kAvx2) return N_AVX2::TanhHere()(x, count, y);
#endif
  HWY_NAMESPACE::TanhHere()(x, count, y);
}

}  // namespace quire
#endif  // HWY_ONCE
