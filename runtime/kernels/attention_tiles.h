// The vector code of attention on one tile of 64 tokens, as a table of functions per instruction
// set. All tables give the same bits. Any thread; nothing owned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/cpu_features.h"
#include "runtime/kv_cache/kv_layout.h"

namespace quire {

// Running softmax of a group of rows: out = o / l, weights are exp2(s - m). Rows of o are `stride`
// floats apart, a multiple of 16 whose tail beyond head_dim holds zeros.
struct AttentionState {
  float* m;
  float* l;
  float* o;
  int32_t stride;
};

// Memory that a product asks for while it computes, because it is read next.
struct Prefetch {
  const std::byte* start = nullptr;  // null: nothing
  int32_t rows = 0, row_bytes = 0, stride = 0;
};

// C [rows][width] (+)= A [rows][depth] B. B is bf16 as in the pool, depth / 2 rows of pairs, or
// plain f32, depth rows; ldb 32-bit words from row to row in both.
struct TileProduct {
  const float* a;
  int32_t lda;
  const std::byte* b;
  int32_t ldb;
  int32_t depth, width;
  float* c;
  int32_t ldc;
  int32_t rows;
  bool add;  // C += A B
  Prefetch prefetch;
};

struct SoftmaxTile {
  float* s;  // [rows][64] scores in units of log2; becomes the weights
  int32_t rows;
  int32_t visible;  // tokens of the tile that row 0 sees; may be negative or beyond 64
  int32_t group;    // rows per query token: each further token sees one more
};

struct AttentionTiles {
  // dst[i] = src[i] * factor.
  void (*scale)(const float* src, int32_t count, float factor, float* dst);
  // The first `columns` columns of bf16 [depth / 2][width][2] to f32 [depth][width].
  void (*widen)(const std::byte* src, int32_t depth, int32_t width, int32_t columns, float* dst);
  // Own product for few rows that reads bf16 as it lies. width is a multiple of 16.
  void (*product)(const TileProduct& product);
  // Online softmax over one tile. Rows that see nothing in it keep their state and get weight 0.
  void (*softmax)(const SoftmaxTile& tile, const AttentionState& state);
  // Merges a later chunk's state into an earlier one's. Rows that saw nothing in the chunk are left
  // alone.
  void (*fold)(int32_t rows, const AttentionState& state, const AttentionState& chunk);
  // out[r][0..dim) = o / l, zeros where l is 0.
  void (*finish)(int32_t row, int32_t dim, const AttentionState& state, float* out);
  // 2^x elementwise, as softmax uses it; for tests. count is a multiple of 16.
  void (*exp2)(const float* x, int32_t count, float* y);
};

const AttentionTiles& AttentionTilesFor(IsaLevel isa);

// C (+)= A B by sequential fma, B plain f32: the definition of every product, slow.
void SequentialProduct(const TileProduct& product);

}  // namespace quire
