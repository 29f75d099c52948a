#include "runtime/kernels/swiglu.h"

#include "runtime/kernels/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/swiglu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// 2^t: n = round(t), then the polynomial of Cephes' exp2f on [-0.5, 0.5], times 2^n put together as
// bits. t >= 128 gives infinity, t < -126 the smallest normal number.
template <class D, class V>
HWY_INLINE V Exp2(D d, V t) {
  const hn::RebindToSigned<D> di;
  t = hn::Min(hn::Max(t, hn::Set(d, -126.0f)), hn::Set(d, 128.0f));
  const auto n = hn::NearestInt(t);
  const V x = hn::Sub(t, hn::ConvertTo(d, n));
  V p = hn::Set(d, 1.535336188319500e-4f);
  for (const float c : {1.339887440266574e-3f, 9.618437357674640e-3f, 5.550332471162809e-2f,
                        2.402264791363012e-1f, 6.931472028550421e-1f, 1.0f}) {
    p = hn::Add(hn::Mul(p, x), hn::Set(d, c));
  }
  const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
  return hn::Mul(p, scale);
}

// A NaN that the clamp of Exp2 hides comes back through the division's numerator.
template <class D, class V>
HWY_INLINE V Gate(D d, V g, V u) {
  const V e = Exp2(d, hn::Mul(g, hn::Set(d, -1.44269504f)));
  return hn::Mul(hn::Div(g, hn::Add(hn::Set(d, 1.0f), e)), u);
}

void SwiGluImpl(const float* gate, const float* up, int32_t count, float* out) {
  const hn::CappedTag<float, 16> d;
  const int32_t n = static_cast<int32_t>(hn::Lanes(d));
  int32_t i = 0;
  for (; i + n <= count; i += n) {
    hn::StoreU(Gate(d, hn::LoadU(d, gate + i), hn::LoadU(d, up + i)), d, out + i);
  }
  if (i < count) {
    const size_t rest = static_cast<size_t>(count - i);
    hn::StoreN(Gate(d, hn::LoadN(d, gate + i, rest), hn::LoadN(d, up + i, rest)), d, out + i, rest);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(SwiGluImpl);

void SwiGlu(const float* gate, const float* up, int32_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(SwiGluImpl)(gate, up, count, out);
}

}  // namespace quire
#endif
