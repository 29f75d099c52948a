// The shape and traits of a loaded model, filled and range-checked by the loader. Plain value;
// immutable after load; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace quire {

enum class RopeKind : uint8_t { kInterleaved, kHalfSplit };  // pairs (2i, 2i+1), or (i, i + dims/2)

struct ModelConfig {
  std::string architecture;  // "llama"
  std::string name;          // general.name of the file, may be empty
  std::string quantization;  // most frequent weight type by bytes, "Q4_1"
  uint64_t parameter_count = 0;
  int32_t vocab_size = 0;  // rows of the embedding
  int32_t hidden_size = 0;
  int32_t num_layers = 0;
  int32_t num_heads = 0;  // query heads; multiple of num_kv_heads
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;  // even, 32..256
  int32_t ffn_size = 0;
  int32_t context_tokens = 0;  // trained
  float rms_eps = 0;
  float attention_scale = 0;  // 1 / sqrt(head_dim) unless the file says otherwise
  RopeKind rope_kind = RopeKind::kInterleaved;
  int32_t rope_dims = 0;    // leading dims of a head that rotate; even, <= head_dim
  float rope_theta = 0;     // base frequency
  float rope_scale = 1.0f;  // linear scaling: positions are divided by it
};

}  // namespace quire
