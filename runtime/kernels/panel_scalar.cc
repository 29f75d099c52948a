// Panel kernels of the scalar level: the same templates on plain arrays. They define the results,
// run on any processor and let the logic of the AVX-512 kernels be tested everywhere. Not fast.
#include <cmath>
#include <cstring>

#include "runtime/kernels/panel.h"
#include "runtime/kernels/panel_format.h"
#include "runtime/tensor/half.h"

namespace quire {
namespace {

#define QUIRE_INLINE inline
#define QUIRE_UNROLL(n)

struct Plain {
  struct I {
    uint32_t v[16];
  };
  struct F {
    float v[16];
  };
  static constexpr int kTileRows = 1;
  static constexpr int kWideRows = 2, kWidePanels = 2, kWideFrom = 2;
  static constexpr int kFloatRows = 2, kFloatPanels = 1, kFloatLonePanels = 1;

  template <typename R, typename Fn>
  static R Lanes(Fn fn) {
    R r;
    for (int i = 0; i < 16; ++i) r.v[i] = fn(i);
    return r;
  }
  static uint16_t Half(const uint8_t* p, int i) {
    return static_cast<uint16_t>(p[2 * i] | (p[2 * i + 1] << 8));
  }

  static I ZeroI() {
    return Lanes<I>([](int) { return 0u; });
  }
  static F ZeroF() {
    return Lanes<F>([](int) { return 0.0f; });
  }
  static I SetByte(int v) {
    return Lanes<I>([v](int) { return static_cast<uint32_t>(v) * 0x01010101u; });
  }
  static I Load(const uint8_t* p) {
    I r;
    std::memcpy(r.v, p, sizeof r.v);
    return r;
  }
  static F LoadF32(const uint8_t* p) {
    F r;
    std::memcpy(r.v, p, sizeof r.v);
    return r;
  }
  static F LoadHalf(const uint8_t* p) {
    return Lanes<F>([p](int i) { return HalfToFloat(Half(p, i)); });
  }
  static F LoadBf16(const uint8_t* p) {
    return Lanes<F>([p](int i) { return BFloat16ToFloat(Half(p, i)); });
  }
  static F LoadU8(const uint8_t* p) {
    return Lanes<F>([p](int i) { return static_cast<float>(p[i]); });
  }
  static F LoadS8(const uint8_t* p) {
    return Lanes<F>([p](int i) { return static_cast<float>(static_cast<int8_t>(p[i])); });
  }
  static I Xor(const I& a, const I& b) {
    return Lanes<I>([&](int i) { return a.v[i] ^ b.v[i]; });
  }
  static I And(const I& a, const I& b) {
    return Lanes<I>([&](int i) { return a.v[i] & b.v[i]; });
  }
  static I Sub(const I& a, const I& b) {
    return Lanes<I>([&](int i) { return a.v[i] - b.v[i]; });
  }
  static I ShiftRight(const I& a, int bits) {  // of 16-bit units
    return Lanes<I>(
        [&](int i) { return ((a.v[i] & 0xffff) >> bits) | ((a.v[i] >> 16 >> bits) << 16); });
  }
  static I ShiftLeft(const I& a, int bits) {
    return Lanes<I>(
        [&](int i) { return ((a.v[i] << bits) & 0xffff) | ((a.v[i] >> 16 << 16) << bits); });
  }
  static I OrAnd(const I& a, const I& b, const I& mask) {
    return Lanes<I>([&](int i) { return a.v[i] | (b.v[i] & mask.v[i]); });
  }
  template <int kShift>
  static I Broadcast(const int32_t* p) {
    return Lanes<I>([p](int) { return static_cast<uint32_t>(*p) << kShift; });
  }
  static I BroadcastBytes(const int8_t* q) {
    uint32_t bytes;
    std::memcpy(&bytes, q, sizeof bytes);
    return Lanes<I>([bytes](int) { return bytes; });
  }
  static I Dot(const I& acc, const I& u, const I& a) {
    return Lanes<I>([&](int i) {
      int32_t sum = static_cast<int32_t>(acc.v[i]);
      for (int c = 0; c < 4; ++c) {
        sum += static_cast<int32_t>((u.v[i] >> (8 * c)) & 0xff) *
               static_cast<int8_t>((a.v[i] >> (8 * c)) & 0xff);
      }
      return static_cast<uint32_t>(sum);
    });
  }
  static I Dot(const I& acc, const I& u, const int8_t* q) { return Dot(acc, u, BroadcastBytes(q)); }
  static F ToFloat(const I& a) {
    return Lanes<F>([&](int i) { return static_cast<float>(static_cast<int32_t>(a.v[i])); });
  }
  static F BroadcastF(const float* p) {
    return Lanes<F>([p](int) { return *p; });
  }
  static F Mul(const F& a, const F& b) {
    return Lanes<F>([&](int i) { return a.v[i] * b.v[i]; });
  }
  static F MulBroadcast(const F& a, const float* p) {
    return Lanes<F>([&](int i) { return a.v[i] * *p; });
  }
  static F Fma(const F& a, const F& b, const F& c) {
    return Lanes<F>([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
  }
  static F FmaBroadcast(const F& a, const float* p, const F& c) {
    return Lanes<F>([&](int i) { return std::fma(a.v[i], *p, c.v[i]); });
  }
  static void StoreI(uint8_t* p, const I& v) { std::memcpy(p, v.v, sizeof v.v); }
  static void Store(float* p, const F& v) { std::memcpy(p, v.v, sizeof v.v); }
  static void Prefetch(const uint8_t*) {}
};

#include "runtime/kernels/panel_traits-inl.h"
// After the traits that they use.
#include "runtime/kernels/panel_float-inl.h"
#include "runtime/kernels/panel_vnni-inl.h"

}  // namespace

const LinearKernels kLinearScalar = {
    .f32 = &FloatPanels<Plain, DType::kF32>,
    .f16 = &FloatPanels<Plain, DType::kF16>,
    .bf16 = &FloatPanels<Plain, DType::kBF16>,
    .q4_0 = &QuantPanels<Plain, DType::kQ4_0>,
    .q4_1 = &QuantPanels<Plain, DType::kQ4_1>,
    .q5_0 = &QuantPanels<Plain, DType::kQ5_0>,
    .q5_1 = &QuantPanels<Plain, DType::kQ5_1>,
    .q8_0 = &QuantPanels<Plain, DType::kQ8_0>,
    .q4_k = &QuantPanels<Plain, DType::kQ4_K>,
    .q5_k = &QuantPanels<Plain, DType::kQ5_K>,
    .q6_k = &QuantPanels<Plain, DType::kQ6_K>,
};

}  // namespace quire
