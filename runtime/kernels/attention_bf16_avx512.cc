// Compiled for AVX-512 with BF16: see isa_entry.h. One accumulator per element, ascending pairs.
#include <immintrin.h>

#include "runtime/kernels/attention_bf16.h"

namespace quire {
namespace {

static inline __m512bh Pair(const uint16_t* a) {
  int32_t pair;
  __builtin_memcpy(&pair, a, sizeof(pair));
  return (__m512bh)_mm512_set1_epi32(pair);
}

template <int32_t kRows, int32_t kVecs>
static void Block(const Bf16Product& p, int32_t row, int32_t column) {
  __m512 acc[kRows][kVecs];
  for (int32_t r = 0; r < kRows; ++r) {
    for (int32_t j = 0; j < kVecs; ++j) acc[r][j] = _mm512_setzero_ps();
  }
  const uint16_t* a = p.a + static_cast<int64_t>(row) * p.lda;
  const uint32_t* b = reinterpret_cast<const uint32_t*>(p.b) + column;
  const char* wanted = reinterpret_cast<const char*>(p.prefetch.start);
  int32_t wanted_rows = row == 0 && column == 0 ? p.prefetch.rows : 0;
  for (int32_t k = 0; k < p.depth; k += 2, b += p.ldb) {
    if (wanted_rows > 0) {
      for (int32_t byte = 0; byte < p.prefetch.row_bytes; byte += 64)
        __builtin_prefetch(wanted + byte);
      wanted += p.prefetch.stride;
      --wanted_rows;
    }
    __m512bh x[kRows];
    for (int32_t r = 0; r < kRows; ++r) x[r] = Pair(a + r * p.lda + k);
    for (int32_t j = 0; j < kVecs; ++j) {
      const __m512bh y = (__m512bh)_mm512_loadu_si512(b + j * 16);
      for (int32_t r = 0; r < kRows; ++r) acc[r][j] = _mm512_dpbf16_ps(acc[r][j], x[r], y);
    }
  }
  for (int32_t r = 0; r < kRows; ++r) {
    float* c = p.c + static_cast<int64_t>(row + r) * p.ldc + column;
    for (int32_t j = 0; j < kVecs; ++j, c += 16) {
      _mm512_storeu_ps(c, p.add ? _mm512_add_ps(acc[r][j], _mm512_loadu_ps(c)) : acc[r][j]);
    }
  }
}

template <int32_t kRows>
static void Rows(const Bf16Product& p, int32_t row) {
  int32_t column = 0;
  for (; column + 64 <= p.width; column += 64) Block<kRows, 4>(p, row, column);
  for (; column + 16 <= p.width; column += 16) Block<kRows, 1>(p, row, column);
}

}  // namespace

void Bf16ProductAvx512(const Bf16Product& p) {
  const int32_t passes = (p.rows + 5) / 6;
  for (int32_t pass = 0; pass < passes; ++pass) {
    const int32_t row = p.rows * pass / passes;
    switch (p.rows * (pass + 1) / passes - row) {
      case 1:
        Rows<1>(p, row);
        break;
      case 2:
        Rows<2>(p, row);
        break;
      case 3:
        Rows<3>(p, row);
        break;
      case 4:
        Rows<4>(p, row);
        break;
      case 5:
        Rows<5>(p, row);
        break;
      case 6:
        Rows<6>(p, row);
        break;
    }
  }
}

void RoundToBf16Avx512(const float* src, int32_t count, uint16_t* dst) {
  int32_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512bh pair =
        _mm512_cvtne2ps_pbh(_mm512_loadu_ps(src + i + 16), _mm512_loadu_ps(src + i));
    _mm512_storeu_si512(dst + i, (__m512i)pair);
  }
  for (; i < count; i += 16) {
    const int32_t left = count - i;
    const __mmask16 mask = static_cast<__mmask16>(left < 16 ? (1u << left) - 1 : 0xffffu);
    const __m256bh half = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, src + i));
    _mm256_mask_storeu_epi16(dst + i, mask, (__m256i)half);
  }
}

}  // namespace quire
