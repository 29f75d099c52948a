// The llama family: its keys to a ModelConfig, its tensor names and shapes to places in
// ModelWeights. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/loader/gguf.h"
#include "runtime/loader/key_reader.h"
#include "runtime/model/model_config.h"
#include "runtime/model/weights.h"

namespace quire {

// Every number range-checked; vocab_size is given (the tokenizer's). Problems are collected in
// `keys`.
ModelConfig ReadLlamaConfig(KeyReader& keys, uint32_t vocab_size,
                            std::vector<std::string>& warnings);

// Where the tensors of the file go: matrices are packed, vectors become f32. In the order of the
// arena.
struct WeightPlan {
  struct Entry {
    const GgufTensor* tensor;
    PackedMatrix* matrix = nullptr;  // one of the two; its shape is set, its data is not
    std::span<const float>* vector = nullptr;
  };
  std::vector<Entry> entries;
  size_t arena_bytes = 0;
};

// Checks every required tensor's shape, and completes config.quantization and .parameter_count. The
// plan points into header and weights. INVALID_ARGUMENT lists all that is missing or misshapen;
// unknown tensors are warnings.
absl::StatusOr<WeightPlan> PlanLlamaWeights(const ModelFile& file, const GgufHeader& header,
                                            ModelConfig& config, ModelWeights& weights,
                                            std::vector<std::string>& warnings);

}  // namespace quire
