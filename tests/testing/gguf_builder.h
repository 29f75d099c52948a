// Writes GGUF files in memory, well-formed or not: the counts, the alignment and each tensor's
// recorded offset can be set to lies. Also a small valid llama with seeded weights. Plain value;
// one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor/dtype.h"

namespace quire {

class GgufBuilder {
 public:
  struct Tensor {
    std::string name;
    uint32_t type = 0;
    std::vector<uint64_t> dims;
    std::string data;
    std::optional<uint64_t> offset;  // recorded instead of the right one
  };

  // Sets or replaces a key.
  GgufBuilder& U32(std::string_view key, uint32_t value);
  GgufBuilder& F32(std::string_view key, float value);
  GgufBuilder& Bool(std::string_view key, bool value);
  GgufBuilder& String(std::string_view key, std::string_view value);
  GgufBuilder& Strings(std::string_view key, const std::vector<std::string>& values);
  GgufBuilder& I32s(std::string_view key, const std::vector<int32_t>& values);
  GgufBuilder& Raw(std::string_view key, uint32_t type, std::string_view value_bytes);
  GgufBuilder& Append(std::string_view key, uint32_t type,
                      std::string_view value_bytes);  // even if it is there
  GgufBuilder& Remove(std::string_view key);
  GgufBuilder& Add(Tensor tensor);
  GgufBuilder& RemoveTensor(std::string_view name);
  Tensor& tensor(std::string_view name);

  uint32_t version = 3;
  uint64_t alignment = 32;
  std::optional<uint64_t> key_count, tensor_count;

  // `header_bytes`, if given, is set to the length up to the end of the tensor table.
  std::string Build(size_t* header_bytes = nullptr) const;

 private:
  struct Key {
    std::string name, bytes;  // bytes: type and value
  };
  std::vector<Key> keys_;
  std::vector<Tensor> tensors_;
};

// Little-endian bytes of a number.
template <typename T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
}
std::string LengthPrefixed(std::string_view s);

// A zero-extended tensor of `type` with seeded, small, finite weights.
std::string SeededBlocks(DType type, uint64_t elements, uint32_t seed);

struct TinyLlamaShape {
  uint32_t hidden = 64, layers = 2, heads = 2, kv_heads = 1, ffn = 96, vocab = 40, context = 256;
  DType matrix_type = DType::kF32, embedding_type = DType::kF32;
  bool tied = false;
  uint32_t seed = 1;
};
GgufBuilder TinyLlama(const TinyLlamaShape& shape);

}  // namespace quire
