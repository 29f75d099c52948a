// Every buffer that a step of the transformer writes: one arena, sized at construction for the
// largest step. Engine thread and kernel workers during Forward; owns the memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/kernels/quantize.h"
#include "runtime/model/model_config.h"
#include "runtime/tensor/arena.h"

namespace quire {

struct ActivationSizes {
  int32_t max_rows = 1;  // of a step
  int32_t max_logits_rows = 1;
  int32_t workers = 1;
};

// Rows up to which every worker norms and quantises all rows for itself, which saves a barrier.
inline constexpr int32_t kPrivateRows = 4;

// Floats of a worker's tile of results, times two (gate and up): small enough to stay in L2.
inline constexpr int32_t kTileFloats = 8192;

// A matrix of activations both ways: f32 rows and the int8 rows made of them.
struct ActBuffer {
  std::span<float> f32;
  ActRows rows;  // view of all rows; f32 points into the span above
};

struct WorkerScratch {
  ActBuffer hidden;             // [2 * kPrivateRows, max(hidden, heads * head_dim)]
  std::span<float> tile;        // results of a few panels before they are folded into their rows
  std::span<std::byte> linear;  // scratch of Linear
};

struct Activations {
  static absl::StatusOr<Activations> Create(const ModelConfig& config,
                                            const ActivationSizes& sizes);

  Arena arena;
  std::span<float> x;          // [rows, hidden]: the residual stream
  std::span<float> rope;       // [rows, 2, rope_dims]: factors of each row's position
  std::span<float> qkv;        // [2 * rows, q + 2 kv]: of the rows, then of their residuals
  std::span<float> attention;  // [rows, q]
  ActBuffer hidden;            // [2 * rows, max(hidden, q)]: input of the next products
  ActBuffer ffn;               // [rows, ffn]: gated hidden units, input of down
  std::span<float> logits;     // [logits_rows, vocab]
  std::span<float> group_max;  // [logits_rows, ceil(vocab / 256)]
  std::vector<WorkerScratch> workers;
};

}  // namespace quire
