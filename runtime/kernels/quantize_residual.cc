#include "runtime/kernels/hwy_targets.h"
#include "runtime/kernels/quantize.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/quantize_residual.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// rest = x - d q, product and difference rounded apart.
void SubtractQuantized(const float* x, const int8_t* q, const ActScale* scales, int32_t blocks,
                       float* rest) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const int32_t n = static_cast<int32_t>(hn::Lanes(d));
  for (int32_t b = 0; b < blocks; ++b) {
    const auto scale = hn::Set(d, scales[b].d);
    for (int32_t i = b * kQuantBlock; i < (b + 1) * kQuantBlock; i += n) {
      const auto value = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, q + i)));
      hn::StoreU(hn::Sub(hn::LoadU(d, x + i), hn::Mul(scale, value)), d, rest + i);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(SubtractQuantized);

void QuantizeResidual(const ActRows& act, int32_t row, int32_t residual) {
  float* rest = const_cast<float*>(act.f32) + residual * act.f32_stride;  // the caller's buffer
  HWY_DYNAMIC_DISPATCH(SubtractQuantized)(
      act.f32 + row * act.f32_stride, act.q + row * act.q_stride,
      act.scales + row * act.scale_stride, act.cols / kQuantBlock, rest);
  QuantizeRow(rest, act, residual);
}

}  // namespace quire
#endif
