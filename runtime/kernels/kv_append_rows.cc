#include "runtime/kernels/kv_append_rows.h"

#include "runtime/kernels/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/kv_append_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using DU = hn::CappedTag<uint32_t, 16>;
using VU = hn::Vec<DU>;
constexpr int32_t kLanes = HWY_MAX_LANES_D(DU);

// The bf16 of each f32 in the upper half of its lane; the lower half is rubbish.
HWY_INLINE VU RoundUpper(VU bits) {
  const DU d;
  const VU tie = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const VU rounded = hn::Add(bits, hn::Add(tie, hn::Set(d, 0x7fff)));
  const auto nan = hn::Gt(hn::And(bits, hn::Set(d, 0x7fffffff)), hn::Set(d, 0x7f800000));
  return hn::IfThenElse(nan, hn::Or(bits, hn::Set(d, 0x400000)), rounded);
}

inline uint32_t RoundUpper(uint32_t bits) {
  return (bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : bits + 0x7fff + ((bits >> 16) & 1);
}
inline uint32_t Pack(const float* low, const float* high) {
  uint32_t l, h;
  __builtin_memcpy(&l, low, sizeof(l));
  __builtin_memcpy(&h, high, sizeof(h));
  return RoundUpper(l) >> 16 | (RoundUpper(h) & 0xffff0000u);
}

void PackNeighbours(const float* src, int32_t pairs, uint32_t* dst) {
  const DU d;
  int32_t i = 0;
  for (; i + kLanes <= pairs; i += kLanes) {
    const VU a = RoundUpper(hn::LoadU(d, reinterpret_cast<const uint32_t*>(src) + 2 * i));
    const VU b = RoundUpper(hn::LoadU(d, reinterpret_cast<const uint32_t*>(src) + 2 * i + kLanes));
    const VU low = hn::ShiftRight<16>(hn::ConcatEven(d, b, a));
    hn::StoreU(hn::Or(low, hn::And(hn::ConcatOdd(d, b, a), hn::Set(d, 0xffff0000u))), d, dst + i);
  }
  for (; i < pairs; ++i) dst[i] = Pack(src + 2 * i, src + 2 * i + 1);
}

void PackRows(const float* low, const float* high, int32_t count, uint32_t* dst) {
  const DU d;
  int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const VU a = RoundUpper(hn::LoadU(d, reinterpret_cast<const uint32_t*>(low) + i));
    const VU b = RoundUpper(hn::LoadU(d, reinterpret_cast<const uint32_t*>(high) + i));
    hn::StoreU(hn::Or(hn::ShiftRight<16>(a), hn::And(b, hn::Set(d, 0xffff0000u))), d, dst + i);
  }
  for (; i < count; ++i) dst[i] = Pack(low + i, high + i);
}

uint16_t Quantize(const float* src, int32_t count, int32_t limit, int16_t* q) {
  const hn::RebindToFloat<DU> df;
  const DU d;
  const hn::Rebind<int16_t, decltype(df)> half;
  const auto magnitude = hn::Set(d, 0x7fffffff);
  VU top = hn::Zero(d);
  int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto bits = hn::LoadU(d, reinterpret_cast<const uint32_t*>(src) + i);
    top = hn::Max(top, hn::And(bits, magnitude));
  }
  uint32_t amax_bits = hn::ReduceMax(d, top);
  for (; i < count; ++i) {
    uint32_t bits;
    __builtin_memcpy(&bits, src + i, sizeof(bits));
    bits &= 0x7fffffff;
    if (bits > amax_bits) amax_bits = bits;
  }
  if (amax_bits < 0x0d800000 || amax_bits >= 0x7f800000) {
    __builtin_memset(q, 0, sizeof(*q) * static_cast<size_t>(count));
    return amax_bits < 0x7f800000 ? 0 : 0x7fc0;
  }
  float amax, scale;
  __builtin_memcpy(&amax, &amax_bits, sizeof(amax));
  const float exact = amax / static_cast<float>(limit);
  uint32_t bits;
  __builtin_memcpy(&bits, &exact, sizeof(bits));
  bits = (bits + 0xffff) & 0xffff0000u;  // up, so that no element exceeds the limit
  __builtin_memcpy(&scale, &bits, sizeof(scale));
  const float inverse = 1.0f / scale;
  const auto factor = hn::Set(df, inverse);
  for (i = 0; i + kLanes <= count; i += kLanes) {
    const auto n = hn::NearestInt(hn::Mul(hn::LoadU(df, src + i), factor));
    hn::StoreU(hn::DemoteTo(half, n), half, q + i);
  }
  for (; i < count; ++i) q[i] = static_cast<int16_t>(__builtin_rintf(src[i] * inverse));
  return static_cast<uint16_t>(bits >> 16);
}

}  // namespace

const KvAppendRows& AppendRows() {
  static constexpr KvAppendRows kRows = {PackNeighbours, PackRows, Quantize};
  return kRows;
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

const KvAppendRows& KvAppendRowsFor(IsaLevel isa) {
#if HWY_TARGETS & HWY_AVX3
  if (isa >= IsaLevel::kAvx512) return N_AVX3::AppendRows();
#endif
#if HWY_TARGETS & HWY_AVX2
  if (isa >= IsaLevel::kAvx2) return N_AVX2::AppendRows();
#endif
  return HWY_NAMESPACE::AppendRows();
}

}  // namespace quire
#endif  // HWY_ONCE
