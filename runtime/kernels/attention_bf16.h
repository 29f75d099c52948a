// The products of attention in bf16: A and B are bf16, sums are f32. The definition is vdpbf16ps,
// which adds the second product of a pair, then the first, each with one rounding and with
// subnormal numbers taken and given as zero. Any thread; nothing owned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/attention_tiles.h"

namespace quire {

// C [rows][width] (+)= A [rows][depth] B. B is depth / 2 rows of pairs, as in the pool; ldb pairs
// from row to row.
struct Bf16Product {
  const uint16_t* a;
  int32_t lda;  // even; a is 4-byte aligned
  const std::byte* b;
  int32_t ldb;
  int32_t depth, width;
  float* c;
  int32_t ldc;
  int32_t rows;
  bool add;  // C += A B
  Prefetch prefetch;
};

// The level kAvx512Bf16. Width is a multiple of 16; every row's bits are its own.
void Bf16ProductAvx512(const Bf16Product& product);
// dst[i] = bf16(src[i]), to nearest even. At the level kAvx512Bf16 subnormals become 0.
void RoundToBf16Avx512(const float* src, int32_t count, uint16_t* dst);

// The same in plain loops, slow.
void SequentialBf16Product(const Bf16Product& product);
void SequentialRoundToBf16(const float* src, int32_t count, uint16_t* dst);

}  // namespace quire
