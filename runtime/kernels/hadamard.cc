// Invariant: every set adds the same pairs in the same stages, so the bits are equal.
#include "runtime/kernels/hadamard.h"

#include "runtime/kernels/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/hadamard.cc"
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

// The element kApart lanes away: that of the lane number with this bit flipped.
template <int32_t kApart>
HWY_INLINE V Partner(V v) {
  const D d;
  if constexpr (kApart == 1) {
    return hn::Shuffle2301(v);
  } else if constexpr (kApart == 2) {
    return hn::Shuffle1032(v);
  } else if constexpr (2 * kApart == kLanes) {
    return hn::ConcatLowerUpper(d, v, v);
  } else {
    return hn::SwapAdjacentBlocks(v);
  }
}

// Lanes without the bit kApart become self + partner, those with it partner - self.
template <int32_t kApart>
HWY_INLINE V Butterfly(V v) {
  const D d;
  const DU du;
  const auto bit = hn::And(hn::Iota(du, 0), hn::Set(du, uint32_t{kApart}));
  const auto sign = hn::IfThenElseZero(hn::Ne(bit, hn::Zero(du)), hn::Set(du, 0x80000000u));
  return hn::Add(Partner<kApart>(v), hn::Xor(v, hn::BitCast(d, sign)));
}

HWY_INLINE V WithinVector(V v, int32_t block) {
  if (block > 1) v = Butterfly<1>(v);
  if (block > 2) v = Butterfly<2>(v);
  if constexpr (kLanes > 4) {
    if (block > 4) v = Butterfly<4>(v);
  }
  if constexpr (kLanes > 8) {
    if (block > 8) v = Butterfly<8>(v);
  }
  return v;
}

HWY_INLINE void Pair(float* a, float* b) {
  const D d;
  const V x = hn::LoadU(d, a), y = hn::LoadU(d, b);
  hn::StoreU(hn::Add(x, y), d, a);
  hn::StoreU(hn::Sub(x, y), d, b);
}

// Stages of pairs `apart` elements apart, in plain code: rows shorter than a vector.
void SmallBlocks(float* x, int32_t count, int32_t block) {
  for (int32_t apart = 1; apart < block; apart *= 2) {
    for (int32_t i = 0; i < count; ++i) {
      if ((i & apart) != 0) continue;
      const float a = x[i], b = x[i + apart];
      x[i] = a + b;
      x[i + apart] = a - b;
    }
  }
}

void Transform(float* x, int32_t count, int32_t block) {
  const D d;
  if (count % kLanes != 0) return SmallBlocks(x, count, block);
  for (int32_t i = 0; i < count; i += kLanes)
    hn::StoreU(WithinVector(hn::LoadU(d, x + i), block), d, x + i);
  for (int32_t apart = kLanes; apart < block; apart *= 2) {
    for (int32_t i = 0; i < count; i += 2 * apart) {
      for (int32_t j = i; j < i + apart; j += kLanes) Pair(x + j, x + j + apart);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(Transform);

void HadamardInPlace(float* x, int32_t count) {
  HWY_DYNAMIC_DISPATCH(Transform)(x, count, HadamardBlock(count));
}

}  // namespace quire
#endif
