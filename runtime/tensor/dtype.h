// Element types of stored tensors, named as in GGUF, with their block geometry. Pure data; any
// thread. Source: ggml's gguf.md and ggml-common.h (block layouts).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quire {

// Values are the type ids of GGUF files.
enum class DType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

struct DTypeTraits {
  DType type;
  std::string_view name;   // "Q4_1"
  int32_t block_elements;  // elements of a block
  int32_t block_bytes;
};

inline constexpr DTypeTraits kDTypes[] = {
    {DType::kF32, "F32", 1, 4},       {DType::kF16, "F16", 1, 2},
    {DType::kBF16, "BF16", 1, 2},     {DType::kQ4_0, "Q4_0", 32, 18},
    {DType::kQ4_1, "Q4_1", 32, 20},   {DType::kQ5_0, "Q5_0", 32, 22},
    {DType::kQ5_1, "Q5_1", 32, 24},   {DType::kQ8_0, "Q8_0", 32, 34},
    {DType::kQ4_K, "Q4_K", 256, 144}, {DType::kQ5_K, "Q5_K", 256, 176},
    {DType::kQ6_K, "Q6_K", 256, 210},
};

constexpr const DTypeTraits* FindDType(uint32_t id) {
  for (const DTypeTraits& t : kDTypes) {
    if (static_cast<uint32_t>(t.type) == id) return &t;
  }
  return nullptr;
}
constexpr const DTypeTraits& TraitsOf(DType type) {
  return *FindDType(static_cast<uint32_t>(type));
}

}  // namespace quire
