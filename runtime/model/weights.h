// Views of a loaded model's weights. Immutable after load, any thread; the memory belongs to the
// arena that the loader returns beside them. Shapes are [outputs, inputs].
#pragma once

#include <span>
#include <vector>

#include "runtime/kernels/pack.h"

namespace quire {

struct LayerWeights {
  std::span<const float> attention_norm;  // [hidden]
  PackedMatrix wq;                        // [num_heads * head_dim, hidden]
  PackedMatrix wk, wv;                    // [num_kv_heads * head_dim, hidden]
  PackedMatrix wo;                        // [hidden, num_heads * head_dim]
  std::span<const float> ffn_norm;        // [hidden]
  PackedMatrix gate, up;                  // [ffn, hidden]
  PackedMatrix down;                      // [hidden, ffn]
};

struct ModelWeights {
  PackedMatrix embedding;  // [vocab, hidden], read by rows
  std::vector<LayerWeights> layers;
  std::span<const float> output_norm;   // [hidden]
  PackedMatrix lm_head;                 // [vocab, hidden]; the embedding itself when tied
  std::span<const float> rope_factors;  // [rope_dims / 2] frequency divisors, empty = none
  size_t bytes = 0;                     // packed bytes of all of it
  size_t bytes_per_token = 0;           // packed bytes that one decode step reads
};

}  // namespace quire
