// Panel kernels of the avx512 level: AVX-512 with VNNI.
#include <immintrin.h>

#include "runtime/kernels/panel.h"
#include "runtime/kernels/panel_format.h"

namespace quire {
namespace {

#define QUIRE_INLINE [[gnu::always_inline]] inline
#define QUIRE_PRAGMA(text) _Pragma(#text)
#define QUIRE_UNROLL(n) QUIRE_PRAGMA(GCC unroll n)

struct Avx512 {
  using I = __m512i;
  using F = __m512;
  static constexpr int kTileRows = 12;
  static constexpr int kWideRows = 6, kWidePanels = 2, kWideFrom = kPairedRows;
  static constexpr int kFloatRows = 6, kFloatPanels = 4, kFloatLonePanels = 8;

  QUIRE_INLINE static I ZeroI() { return _mm512_setzero_si512(); }
  QUIRE_INLINE static F ZeroF() { return _mm512_setzero_ps(); }
  QUIRE_INLINE static I SetByte(int v) { return _mm512_set1_epi8(static_cast<char>(v)); }
  QUIRE_INLINE static I Load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  QUIRE_INLINE static F LoadHalf(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  QUIRE_INLINE static F LoadF32(const uint8_t* p) { return _mm512_loadu_ps(p); }
  QUIRE_INLINE static F LoadBf16(const uint8_t* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  QUIRE_INLINE static F LoadU8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  QUIRE_INLINE static F LoadS8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  QUIRE_INLINE static I Xor(I a, I b) { return _mm512_xor_si512(a, b); }
  QUIRE_INLINE static I And(I a, I b) { return _mm512_and_si512(a, b); }
  QUIRE_INLINE static I Sub(I a, I b) { return _mm512_sub_epi32(a, b); }
  // Bits that cross bytes are masked off by the caller.
  QUIRE_INLINE static I ShiftRight(I a, unsigned bits) { return _mm512_srli_epi16(a, bits); }
  QUIRE_INLINE static I ShiftLeft(I a, unsigned bits) { return _mm512_slli_epi16(a, bits); }
  QUIRE_INLINE static I OrAnd(I a, I b, I mask) {
    return _mm512_ternarylogic_epi32(a, b, mask, 0xf8);
  }  // a | b & mask

  template <int kShift>
  QUIRE_INLINE static I Broadcast(const int32_t* p) {
    return _mm512_slli_epi32(_mm512_set1_epi32(*p), kShift);
  }
  // As asm: the broadcast stays a memory operand, one fused instruction, and the sums are not
  // reassociated.
  QUIRE_INLINE static I Dot(I acc, I u, const int8_t* q) {
    asm("vpdpbusd %2%{1to16%}, %1, %0"
        : "+v"(acc)
        : "v"(u), "m"(*reinterpret_cast<const int32_t*>(q)));
    return acc;
  }
  // Likewise: as an intrinsic, a load that several dot products share may come back as one of each.
  QUIRE_INLINE static I BroadcastBytes(const int8_t* q) {
    I x;
    asm("vpbroadcastd %1, %0" : "=v"(x) : "m"(*reinterpret_cast<const int32_t*>(q)));
    return x;
  }
  QUIRE_INLINE static I Dot(I acc, I u, I a) {
    asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(u), "v"(a));
    return acc;
  }
  QUIRE_INLINE static F ToFloat(I a) { return _mm512_cvtepi32_ps(a); }
  QUIRE_INLINE static F BroadcastF(const float* p) { return _mm512_set1_ps(*p); }
  QUIRE_INLINE static F Mul(F a, F b) { return _mm512_mul_ps(a, b); }
  QUIRE_INLINE static F MulBroadcast(F a, const float* p) {
    return _mm512_mul_ps(a, _mm512_set1_ps(*p));
  }
  QUIRE_INLINE static F Fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  QUIRE_INLINE static F FmaBroadcast(F a, const float* p, F c) {
    return _mm512_fmadd_ps(a, _mm512_set1_ps(*p), c);
  }
  QUIRE_INLINE static void StoreI(uint8_t* p, I v) { _mm512_storeu_si512(p, v); }
  QUIRE_INLINE static void Store(float* p, F v) { _mm512_storeu_ps(p, v); }
  QUIRE_INLINE static void Prefetch(const uint8_t* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
  }
};

#include "runtime/kernels/panel_traits-inl.h"
// After the traits that they use.
#include "runtime/kernels/panel_float-inl.h"
#include "runtime/kernels/panel_vnni-inl.h"

}  // namespace

const LinearKernels kLinearAvx512 = {
    .f32 = &FloatPanels<Avx512, DType::kF32>,
    .f16 = &FloatPanels<Avx512, DType::kF16>,
    .bf16 = &FloatPanels<Avx512, DType::kBF16>,
    .q4_0 = &QuantPanels<Avx512, DType::kQ4_0>,
    .q4_1 = &QuantPanels<Avx512, DType::kQ4_1>,
    .q5_0 = &QuantPanels<Avx512, DType::kQ5_0>,
    .q5_1 = &QuantPanels<Avx512, DType::kQ5_1>,
    .q8_0 = &QuantPanels<Avx512, DType::kQ8_0>,
    .q4_k = &QuantPanels<Avx512, DType::kQ4_K>,
    .q5_k = &QuantPanels<Avx512, DType::kQ5_K>,
    .q6_k = &QuantPanels<Avx512, DType::kQ6_K>,
};

}  // namespace quire
