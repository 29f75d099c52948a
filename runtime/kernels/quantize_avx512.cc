#include <immintrin.h>

#include "runtime/kernels/isa_entry.h"

namespace quire {

void QuantizeBlocksAvx512(const float* x, int32_t blocks, int8_t* q, ActScale* scales) {
  const __m512i abs_mask = _mm512_set1_epi32(0x7fffffff);
  for (int32_t b = 0; b < blocks; ++b, x += 32, q += 32, ++scales) {
    const __m512 x0 = _mm512_loadu_ps(x), x1 = _mm512_loadu_ps(x + 16);
    const __m512i m16 = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(x0), abs_mask),
                                         _mm512_and_si512(_mm512_castps_si512(x1), abs_mask));
    const __m256i m8 =
        _mm256_max_epi32(_mm512_castsi512_si256(m16), _mm512_extracti64x4_epi64(m16, 1));
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(m8), _mm256_extracti128_si256(m8, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    const int32_t amax_bits = _mm_cvtsi128_si32(m);
    if (amax_bits < 0x0d800000 || amax_bits >= 0x7f800000) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), _mm256_setzero_si256());
      const float d = amax_bits < 0x7f800000 ? 0.0f : __builtin_nanf("");
      scales->d = d;
      scales->d_sum = d;
      scales->neg_sum = 0;
      scales->neg_sum_lo = 0;
      continue;
    }
    const float amax = _mm_cvtss_f32(_mm_castsi128_ps(m));
    const __m512 inverse = _mm512_set1_ps(127.0f / amax);
    const __m512i v0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, inverse));
    const __m512i v1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, inverse));
    const __m128i q0 = _mm512_cvtepi32_epi8(v0), q1 = _mm512_cvtepi32_epi8(v1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q), q0);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + 16), q1);
    // Sums of 4 bytes by a dot product with ones, then of the 4 lanes of each half.
    const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(q0), q1, 1);
    __m256i s = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
    s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0x4e));
    s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0xb1));
    const int32_t sum_lo = _mm_cvtsi128_si32(_mm256_castsi256_si128(s));
    const int32_t sum = sum_lo + _mm_cvtsi128_si32(_mm256_extracti128_si256(s, 1));
    const float d = amax / 127.0f;
    scales->d = d;
    scales->d_sum = d * static_cast<float>(sum);
    scales->neg_sum = -sum;
    scales->neg_sum_lo = -sum_lo;
  }
}

}  // namespace quire
