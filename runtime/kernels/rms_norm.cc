#include "runtime/kernels/rms_norm.h"

#include <cmath>

#include "runtime/kernels/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/rms_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;

float SumOfSquares(const float* x, int32_t count) {
  constexpr int32_t kLanes = 16;
  const D d;
  const int32_t n = static_cast<int32_t>(hn::Lanes(d));
  HWY_ALIGN float lane[kLanes] = {};
  int32_t i = 0;
  if (n == kLanes) {
    auto sum = hn::Zero(d);
    for (; i + kLanes <= count; i += kLanes) {
      const auto v = hn::LoadU(d, x + i);
      sum = hn::Add(sum, hn::Mul(v, v));
    }
    hn::Store(sum, d, lane);
  } else {
    for (int32_t part = 0; part < kLanes; part += n) {
      auto sum = hn::Zero(d);
      for (i = 0; i + kLanes <= count; i += kLanes) {
        const auto v = hn::LoadU(d, x + i + part);
        sum = hn::Add(sum, hn::Mul(v, v));
      }
      hn::Store(sum, d, lane + part);
    }
  }
  for (; i < count; ++i) lane[i % kLanes] += x[i] * x[i];
  for (int32_t apart = kLanes / 2; apart > 0; apart /= 2) {
    for (int32_t j = 0; j < apart; ++j) lane[j] += lane[j + apart];
  }
  return lane[0];
}

void RmsNormImpl(const float* x, const float* weight, float eps, int32_t count, float* out) {
  const float mean = SumOfSquares(x, count) / static_cast<float>(count);
  const float scale = 1.0f / std::sqrt(mean + eps);
  const D d;
  const int32_t n = static_cast<int32_t>(hn::Lanes(d));
  const auto s = hn::Set(d, scale);
  int32_t i = 0;
  for (; i + n <= count; i += n) {
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + i), s), hn::LoadU(d, weight + i)), d, out + i);
  }
  for (; i < count; ++i) out[i] = x[i] * scale * weight[i];
}

void AddToImpl(float* x, const float* delta, int32_t count) {
  const D d;
  const int32_t n = static_cast<int32_t>(hn::Lanes(d));
  int32_t i = 0;
  for (; i + n <= count; i += n) {
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, delta + i)), d, x + i);
  }
  for (; i < count; ++i) x[i] += delta[i];
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(RmsNormImpl);
HWY_EXPORT(AddToImpl);

void RmsNorm(const float* x, const float* weight, float eps, int32_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(RmsNormImpl)(x, weight, eps, count, out);
}

void AddTo(float* x, const float* delta, int32_t count) {
  HWY_DYNAMIC_DISPATCH(AddToImpl)(x, delta, count);
}

}  // namespace quire
#endif
