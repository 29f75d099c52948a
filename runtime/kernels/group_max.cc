#include "runtime/kernels/group_max.h"

#include <limits>

#include "runtime/kernels/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/group_max.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

float MaxOrNanImpl(const float* x, int32_t count) {
  const hn::CappedTag<float, 16> d;
  const int32_t n = static_cast<int32_t>(hn::Lanes(d));
  auto max = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto nan = hn::Ne(max, max);
  int32_t i = 0;
  for (; i + n <= count; i += n) {
    const auto v = hn::LoadU(d, x + i);
    max = hn::Max(max, v);
    nan = hn::Or(nan, hn::IsNaN(v));
  }
  float best = hn::ReduceMax(d, max);
  bool found = !hn::AllFalse(d, nan);
  for (; i < count; ++i) {
    found |= x[i] != x[i];
    best = x[i] > best ? x[i] : best;
  }
  return found ? std::numeric_limits<float>::quiet_NaN() : best;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(MaxOrNanImpl);

float MaxOrNan(const float* x, int32_t count) { return HWY_DYNAMIC_DISPATCH(MaxOrNanImpl)(x, count); }

}  // namespace quire
#endif
