#include "runtime/kernels/logit_scan.h"

#include <limits>

#include "runtime/kernels/hwy_targets.h"
#include "runtime/kernels/logit_scan_exp.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/logit_scan.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr int32_t kLanes = static_cast<int32_t>(hn::MaxLanes(D()));
constexpr int32_t kParts = 16 / kLanes;  // vectors that hold the 16 lanes of a sum

// Operation by operation what ExpOne of logit_scan_ref.cc does.
HWY_INLINE V Exp(V x, V max, V scale) {
  const D d;
  const hn::RebindToSigned<D> di;
  V y = hn::Mul(hn::Sub(x, max), scale);
  const auto tiny = hn::Lt(y, hn::Set(d, scan::kLowest));
  y = hn::Max(y, hn::Set(d, scan::kLowest));
  const V round = hn::Set(d, scan::kRound);
  const V n = hn::Sub(hn::Add(hn::Mul(y, hn::Set(d, scan::kLog2e)), round), round);
  y = hn::Sub(y, hn::Mul(n, hn::Set(d, scan::kLn2High)));
  y = hn::Sub(y, hn::Mul(n, hn::Set(d, scan::kLn2Low)));
  V poly = hn::Set(d, scan::kPoly[0]);
  for (int i = 1; i < 6; ++i) poly = hn::Add(hn::Mul(poly, y), hn::Set(d, scan::kPoly[i]));
  const V value = hn::Add(hn::Add(hn::Mul(poly, hn::Mul(y, y)), y), hn::Set(d, 1.0f));
  const auto exponent = hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  return hn::IfThenZeroElse(tiny, hn::Mul(value, power));
}

void ExpEachImpl(const float* HWY_RESTRICT x, int32_t count, ExpScale e, float* out) {
  const D d;
  const V max = hn::Set(d, e.max), scale = hn::Set(d, e.scale);
  int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(Exp(hn::LoadU(d, x + i), max, scale), d, out + i);
  if (i < count) {
    const size_t rest = static_cast<size_t>(count - i);
    hn::StoreN(Exp(hn::LoadN(d, x + i, rest), max, scale), d, out + i, rest);
  }
}

float SumGroup(const float* HWY_RESTRICT x, int32_t size, V max, V scale) {
  const D d;
  V lane[kParts];
  for (V& part : lane) part = hn::Zero(d);
  int32_t i = 0;
  for (; i + 16 <= size; i += 16) {
    for (int32_t p = 0; p < kParts; ++p) {
      lane[p] = hn::Add(lane[p], Exp(hn::LoadU(d, x + i + p * kLanes), max, scale));
    }
  }
  HWY_ALIGN float sum[16];
  for (int32_t p = 0; p < kParts; ++p) hn::Store(lane[p], d, sum + p * kLanes);
  if (i < size) {
    HWY_ALIGN float rest[16];
    ExpEachImpl(x + i, size - i, {hn::GetLane(max), hn::GetLane(scale)}, rest);
    for (int32_t k = 0; k < size - i; ++k) sum[k] += rest[k];
  }
  for (int32_t apart = 8; apart > 0; apart /= 2) {
    for (int32_t k = 0; k < apart; ++k) sum[k] += sum[k + apart];
  }
  return sum[0];
}

void ExpSumGroupsImpl(const float* x, int32_t count, ExpScale e, float* sums) {
  const D d;
  const V max = hn::Set(d, e.max), scale = hn::Set(d, e.scale);
  for (int32_t begin = 0, g = 0; begin < count; begin += kScanGroup, ++g) {
    const int32_t size = count - begin < kScanGroup ? count - begin : kScanGroup;
    sums[g] = SumGroup(x + begin, size, max, scale);
  }
}

int32_t CollectAtLeastImpl(const float* HWY_RESTRICT x, int32_t count, float threshold,
                           int32_t first_id, CollectOut out) {
  const D d;
  const hn::RebindToSigned<D> di;
  int32_t* HWY_RESTRICT ids = out.ids;
  float* HWY_RESTRICT values = out.values;
  const V limit = hn::Set(d, threshold);
  int32_t found = 0, i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V v = hn::LoadU(d, x + i);
    const auto keep = hn::Ge(v, limit);
    if (hn::AllFalse(d, keep)) continue;
    hn::CompressStore(hn::Iota(di, first_id + i), hn::RebindMask(di, keep), di, ids + found);
    found += static_cast<int32_t>(hn::CompressStore(v, keep, d, values + found));
  }
  for (; i < count; ++i) {
    if (!(x[i] >= threshold)) continue;
    ids[found] = first_id + i;
    values[found++] = x[i];
  }
  return found;
}

CompareCounts CountAgainstImpl(const float* HWY_RESTRICT x, int32_t count, float value) {
  const D d;
  const V v = hn::Set(d, value);
  CompareCounts counts;
  int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V x_i = hn::LoadU(d, x + i);
    counts.greater += static_cast<int32_t>(hn::CountTrue(d, hn::Gt(x_i, v)));
    counts.equal += static_cast<int32_t>(hn::CountTrue(d, hn::Eq(x_i, v)));
  }
  for (; i < count; ++i) {
    counts.greater += x[i] > value;
    counts.equal += x[i] == value;
  }
  return counts;
}

int32_t FindFirstImpl(const float* HWY_RESTRICT x, int32_t count, float value) {
  const D d;
  const V v = hn::Set(d, value);
  int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const intptr_t at = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, x + i), v));
    if (at >= 0) return i + static_cast<int32_t>(at);
  }
  while (i < count && x[i] != value) ++i;
  return i;
}

float MaxOfGroup(const float* HWY_RESTRICT x, int32_t size) {
  const D d;
  V max = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto nan = hn::IsNaN(max);
  int32_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const V v = hn::LoadU(d, x + i);
    max = hn::Max(max, v);
    nan = hn::Or(nan, hn::IsNaN(v));
  }
  float best = hn::ReduceMax(d, max);
  bool found = !hn::AllFalse(d, nan);
  for (; i < size; ++i) {
    found |= x[i] != x[i];
    best = x[i] > best ? x[i] : best;
  }
  return found ? std::numeric_limits<float>::quiet_NaN() : best;
}

void GroupMaximaImpl(const float* x, int32_t count, float* maxima) {
  for (int32_t begin = 0, g = 0; begin < count; begin += kScanGroup, ++g) {
    maxima[g] = MaxOfGroup(x + begin, count - begin < kScanGroup ? count - begin : kScanGroup);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(ExpEachImpl);
HWY_EXPORT(ExpSumGroupsImpl);
HWY_EXPORT(CollectAtLeastImpl);
HWY_EXPORT(CountAgainstImpl);
HWY_EXPORT(FindFirstImpl);
HWY_EXPORT(GroupMaximaImpl);

void ExpEach(const float* x, int32_t count, ExpScale e, float* out) {
  HWY_DYNAMIC_DISPATCH(ExpEachImpl)(x, count, e, out);
}

void ExpSumGroups(const float* x, int32_t count, ExpScale e, float* sums) {
  HWY_DYNAMIC_DISPATCH(ExpSumGroupsImpl)(x, count, e, sums);
}

int32_t CollectAtLeast(const float* x, int32_t count, float threshold, int32_t first_id,
                       CollectOut out) {
  return HWY_DYNAMIC_DISPATCH(CollectAtLeastImpl)(x, count, threshold, first_id, out);
}

CompareCounts CountAgainst(const float* x, int32_t count, float value) {
  return HWY_DYNAMIC_DISPATCH(CountAgainstImpl)(x, count, value);
}

int32_t FindFirst(const float* x, int32_t count, float value) {
  return HWY_DYNAMIC_DISPATCH(FindFirstImpl)(x, count, value);
}

void GroupMaxima(const float* x, int32_t count, float* maxima) {
  HWY_DYNAMIC_DISPATCH(GroupMaximaImpl)(x, count, maxima);
}

}  // namespace quire
#endif
