// A small llama with random weights, built in memory, and its reference forward pass in double
// precision.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/model/model_config.h"
#include "runtime/model/weights.h"
#include "runtime/tensor/arena.h"
#include "runtime/tensor/dtype.h"

namespace quire {

struct TinyModelOptions {
  uint64_t seed = 1;
  int32_t hidden = 64, layers = 2, heads = 4, kv_heads = 2, head_dim = 32, ffn = 128, vocab = 300;
  int32_t context_tokens = 512;
  DType linear = DType::kQ4_1;
  DType embedding = DType::kQ8_0;
  bool tied = true;  // else a separate head of type `linear`
  RopeKind rope_kind = RopeKind::kInterleaved;
  bool rope_factors = false;
};

struct TinyModel {
  ModelConfig config;
  ModelWeights weights;  // views into arena
  Arena arena;
};

TinyModel MakeTinyModel(const TinyModelOptions& options);

// Logits of every position of one sequence: plain loops over the dequantised weights in double, no
// cache, no activation quantisation. [tokens.size()][vocab]
std::vector<std::vector<double>> ReferenceLogits(const TinyModel& model,
                                                 std::span<const TokenId> tokens);

// Seeded random tokens of the model's vocabulary.
std::vector<TokenId> RandomTokens(const ModelConfig& config, int32_t count, uint64_t seed);

}  // namespace quire
