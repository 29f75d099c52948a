#include <immintrin.h>

#include "runtime/kernels/isa_entry.h"

namespace quire {

void QuantizeBlocksAvx2(const float* x, int32_t blocks, int8_t* q, ActScale* scales) {
  const __m256i abs_mask = _mm256_set1_epi32(0x7fffffff);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int32_t b = 0; b < blocks; ++b, x += 32, q += 32, ++scales) {
    __m256i bits[4], v[4];
    for (int i = 0; i < 4; ++i) {
      bits[i] = _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + 8 * i)), abs_mask);
    }
    const __m256i m8 =
        _mm256_max_epi32(_mm256_max_epi32(bits[0], bits[1]), _mm256_max_epi32(bits[2], bits[3]));
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
    const __m256 inverse = _mm256_set1_ps(127.0f / amax);
    for (int i = 0; i < 4; ++i)
      v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), inverse));
    const __m256i lo = _mm256_add_epi32(v[0], v[1]), hi = _mm256_add_epi32(v[2], v[3]);
    const __m256i pairs = _mm256_hadd_epi32(lo, hi);  // lanes: lo lo hi hi | lo lo hi hi
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    const int32_t sum_lo = _mm_cvtsi128_si32(s), sum = sum_lo + _mm_extract_epi32(s, 2);
    const __m256i bytes =
        _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), _mm256_permutevar8x32_epi32(bytes, order));
    const float d = amax / 127.0f;
    scales->d = d;
    scales->d_sum = d * static_cast<float>(sum);
    scales->neg_sum = -sum;
    scales->neg_sum_lo = -sum_lo;
  }
}

}  // namespace quire
