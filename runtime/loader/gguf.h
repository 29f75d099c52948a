// The structure of a GGUF file (version 2 or 3): its keys and tensor table, fully checked, as plain
// values. Strings and arrays stay in the file as ranges; KeyReader reads the ones that are wanted.
// Any thread. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/loader/model_file.h"
#include "runtime/tensor/dtype.h"

namespace quire {

inline constexpr uint64_t kMaxGgufKeys = 65'536, kMaxGgufTensors = 65'536;
inline constexpr uint64_t kMaxGgufKeyBytes = 1024, kMaxGgufNameBytes = 256;
inline constexpr uint64_t kMaxGgufStringBytes = 16 << 20;
inline constexpr uint64_t kMaxGgufArrayCount = 1 << 24;
inline constexpr uint64_t kMaxGgufAlignment = 64 << 10;

enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
std::string_view NameOf(GgufType type);  // "UINT32"

struct GgufValue {
  GgufType type = GgufType::kU8;
  GgufType element = GgufType::kU8;  // of an array
  uint64_t count = 0;                // elements of an array, else 1
  uint64_t bits = 0;                 // a scalar's bytes, zero-extended
  uint64_t begin = 0,
           end = 0;  // the value's bytes in the file: a string with its length, an array's elements
};

struct GgufTensor {
  std::string name;
  DType type = DType::kF32;
  int32_t dim_count = 0;                        // 1..4
  std::array<uint64_t, 4> dims = {1, 1, 1, 1};  // innermost first; unused ones are 1
  uint64_t begin = 0, bytes = 0;                // data in the file
};
std::string ShapeText(const GgufTensor& tensor);  // "[576, 49152]"

struct GgufHeader {
  uint32_t version = 0;
  uint64_t alignment = 32;
  uint64_t data_begin = 0, data_end = 0;
  std::vector<std::pair<std::string, GgufValue>> keys;  // in file order, distinct
  std::vector<GgufTensor> tensors;                      // in file order, distinct names
  std::map<std::string, size_t, std::less<>> key_index, tensor_index;

  const GgufValue* FindKey(std::string_view key) const;
  const GgufTensor* FindTensor(std::string_view name) const;
};

// INVALID_ARGUMENT names file, offset, key or tensor, found and expected. Reserves nothing that the
// file's own size does not bound.
absl::StatusOr<GgufHeader> ParseGguf(const ModelFile& file);

}  // namespace quire
