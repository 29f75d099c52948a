#include <immintrin.h>

#include "runtime/kernels/isa_entry.h"

namespace quire {
namespace {

void QuantizeBlock(const float* x, int8_t* q, ActScale* scales) {
  const __m512i abs_mask = _mm512_set1_epi32(0x7fffffff);
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
    return;
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

// The largest magnitude of each of two blocks, as bits, in all lanes of its half.
__m512i LargestOfPair(__m512 x0, __m512 x1, __m512 x2, __m512 x3) {
  const __m512i abs_mask = _mm512_set1_epi32(0x7fffffff);
  const __m512i m0 = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(x0), abs_mask),
                                      _mm512_and_si512(_mm512_castps_si512(x1), abs_mask));
  const __m512i m1 = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(x2), abs_mask),
                                      _mm512_and_si512(_mm512_castps_si512(x3), abs_mask));
  __m512i m =
      _mm512_max_epi32(_mm512_shuffle_i64x2(m0, m1, 0x44), _mm512_shuffle_i64x2(m0, m1, 0xee));
  m = _mm512_max_epi32(m, _mm512_shuffle_i64x2(m, m, 0xb1));
  m = _mm512_max_epi32(m, _mm512_shuffle_epi32(m, _MM_PERM_BADC));
  return _mm512_max_epi32(m, _mm512_shuffle_epi32(m, _MM_PERM_CDAB));
}

// Scales of two blocks: r holds d in lanes 2 and 3; s the sums of q 0..15 and 16..31 of the first
// block, then of the second.
void StoreScalesOfPair(__m128 r, __m128i s, ActScale* scales) {
  const __m128 d = _mm_shuffle_ps(r, r, 0xfa);
  const __m128i sum = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  const __m128 d_sum = _mm_mul_ps(d, _mm_cvtepi32_ps(sum));
  const __m128i neg_sum = _mm_sub_epi32(_mm_setzero_si128(), sum);
  const __m128i neg_part = _mm_sub_epi32(_mm_setzero_si128(), s);
  const __m128 first = _mm_castsi128_ps(_mm_unpacklo_epi32(neg_sum, neg_part));
  const __m128 second = _mm_castsi128_ps(_mm_unpackhi_epi32(neg_sum, neg_part));
  _mm_storeu_ps(&scales[0].d, _mm_movelh_ps(_mm_unpacklo_ps(d, d_sum), first));
  _mm_storeu_ps(&scales[1].d, _mm_movelh_ps(_mm_unpackhi_ps(d, d_sum), second));
}

// Two blocks with one chain of shuffles and one division; false if one of them is zero or not
// finite.
bool QuantizePair(const float* x, int8_t* q, ActScale* scales) {
  const __m512 x0 = _mm512_loadu_ps(x), x1 = _mm512_loadu_ps(x + 16);
  const __m512 x2 = _mm512_loadu_ps(x + 32), x3 = _mm512_loadu_ps(x + 48);
  const __m512i top = LargestOfPair(x0, x1, x2, x3);
  const __m512i above = _mm512_sub_epi32(top, _mm512_set1_epi32(0x0d800000));
  if (_mm512_cmpge_epu32_mask(above, _mm512_set1_epi32(0x7f800000 - 0x0d800000)) != 0) return false;
  const __m128 amax = _mm_castsi128_ps(
      _mm_unpacklo_epi32(_mm512_castsi512_si128(top), _mm512_extracti32x4_epi32(top, 2)));
  const __m128 limit = _mm_set1_ps(127.0f);
  const __m128 r = _mm_div_ps(_mm_blend_ps(limit, amax, 12), _mm_blend_ps(amax, limit, 12));
  const __m512 i0 = _mm512_broadcastss_ps(r), i1 = _mm512_broadcastss_ps(_mm_movehdup_ps(r));
  const __m512i v01 = _mm512_packs_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(x0, i0)),
                                         _mm512_cvtps_epi32(_mm512_mul_ps(x1, i0)));
  const __m512i v23 = _mm512_packs_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(x2, i1)),
                                         _mm512_cvtps_epi32(_mm512_mul_ps(x3, i1)));
  // Lane l holds values 4 l..4 l + 3 of x0, x1, x2 and x3.
  const __m512i bytes = _mm512_packs_epi16(v01, v23);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(q, _mm512_permutexvar_epi32(order, bytes));
  // Sums of 4 bytes by a dot product with ones, then of the four lanes.
  __m512i s = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), bytes);
  s = _mm512_add_epi32(s, _mm512_shuffle_i64x2(s, s, 0x4e));
  s = _mm512_add_epi32(s, _mm512_shuffle_i64x2(s, s, 0xb1));
  StoreScalesOfPair(r, _mm512_castsi512_si128(s), scales);
  return true;
}

}  // namespace

void QuantizeBlocksAvx512(const float* x, int32_t blocks, int8_t* q, ActScale* scales) {
  int32_t b = 0;
  for (; b + 2 <= blocks; b += 2) {
    if (QuantizePair(x + 32 * b, q + 32 * b, scales + b)) continue;
    QuantizeBlock(x + 32 * b, q + 32 * b, scales + b);
    QuantizeBlock(x + 32 * (b + 1), q + 32 * (b + 1), scales + b + 1);
  }
  if (b < blocks) QuantizeBlock(x + 32 * b, q + 32 * b, scales + b);
}

}  // namespace quire
