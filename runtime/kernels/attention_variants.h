// The softmax of attention beyond plain causal: any mask of 64-bit words, soft-capped logits, ALiBi
// and relative bias, per instruction set with equal bits. Any thread; nothing owned.
#pragma once

#include <cstdint>

#include "runtime/base/cpu_features.h"
#include "runtime/kernels/attention_tiles.h"

namespace quire {

// What happens to scores before the mask, for the heads of one item. Biases are in units of log2.
struct ScoreTransform {
  float cap = 0;                    // > 0: scores come divided by the cap; cap * log2(e)
  const float* slopes = nullptr;    // [heads], null: no ALiBi
  const float* relative = nullptr;  // [heads][relative_stride], entry 0 is for relative_begin
  int32_t relative_begin = 0, relative_end = 0;  // distances; from the end on all are equal, and
                                                 // so are 64 from the begin and past the end
  int32_t relative_stride = 0;
};

struct VariantTile {
  float* s;                 // [tokens * group][64] scores; becomes the weights
  int32_t tokens, group;    // query tokens, rows (heads) of each
  const uint64_t* seen;     // [tokens] bit t: token t of the tile is visible
  const int32_t* position;  // [tokens] of the queries
  int32_t tile_position;    // of the tile's first token
};

// As AttentionTiles::softmax. Rows that see nothing in the tile keep their state and get weight 0.
using VariantSoftmax = void (*)(const VariantTile& tile, const ScoreTransform& transform,
                                const AttentionState& state);
VariantSoftmax VariantSoftmaxFor(IsaLevel isa);

// tanh elementwise, as the soft-cap uses it; for tests. count is a multiple of 16.
void VariantTanh(IsaLevel isa, const float* x, int32_t count, float* y);

}  // namespace quire
