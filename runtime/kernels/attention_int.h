// The products of attention over an integer KV cache, in integers: queries and weights become rows
// of s16 with one scale, sums are exact s32, results f32. The same bits on every instruction set
// and for any number of rows. Any thread; nothing owned.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/base/cpu_features.h"
#include "runtime/kernels/attention_tiles.h"

namespace quire {

// Largest magnitude of queries or weights: with B up to `max_b`, a sum of `depth` products fits in
// s32.
constexpr int32_t OperandLimit(int32_t max_b, int32_t depth) {
  return std::min(32767, 0x7fffffff / (max_b * depth));
}

// C [rows][width] = A B * row_scale * column_scale, or C += A B * row_scale. B is depth / 2 rows of
// pairs of s8 as in the pool, or of s16; ldb pairs from row to row. depth is at most 256.
struct IntProduct {
  const int16_t* a;
  int32_t lda;  // even; a is 4-byte aligned
  const float* row_scale;
  const std::byte* b;
  int32_t ldb;
  bool b_s16;
  int32_t depth, width;
  const uint16_t* column_scale;  // bf16; null: add to C
  float* c;
  int32_t ldc;
  int32_t rows;
  Prefetch prefetch;
};

struct WeightRows {
  const float* p;                // [rows][64]
  const uint16_t* token_scales;  // [64] bf16
  int32_t rows, limit;
};

struct IntTiles {
  // q = x / *scale to nearest, the largest +-limit; a row with NaN or infinity becomes 0 with scale
  // NaN.
  void (*quantize)(const float* x, int32_t count, int32_t limit, int16_t* q, float* scale);
  // The same for rows of weights of 64 tokens times the tokens' scales. A weight of 0 hides its
  // scale.
  void (*quantize_weights)(const WeightRows& weights, int16_t* q, float* scale);
  void (*widen)(const std::byte* src, int32_t count, int16_t* dst);  // s8 to s16
  void (*product)(const IntProduct& product);
};

const IntTiles& IntTilesFor(IsaLevel isa);

// The product in plain loops: the definition, slow.
void SequentialIntProduct(const IntProduct& product);

}  // namespace quire
