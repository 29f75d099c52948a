// Random weights in file form for every stored type, and memory that traps reads and writes beyond
// its end. For the tests of packing and of the linear kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <vector>

#include "runtime/kernels/linear.h"
#include "runtime/tensor/dtype.h"

namespace quire {

// Where the parts of a file block are; -1 or 0 where there is none.
struct BlockLayout {
  int32_t d_at = -1, min_at = -1;           // f16
  int32_t scales_at = 0, scales_bytes = 0;  // sub-block scales
  int32_t high_at = 0, high_bytes = 0;      // bits above the nibble
  int32_t codes_at = 0, codes_bytes = 0;
};
BlockLayout BlockLayoutOf(DType type);

enum class BlockKind { kRandom, kExtremeScales, kLargestCodes, kSmallestCodes };

// rows * cols elements, finite, row-major. kExtremeScales draws scales from zero, subnormal,
// negative, f16 max.
std::vector<std::byte> RandomBlocks(DType type, int32_t rows, int32_t cols, BlockKind kind,
                                    uint64_t seed);

// `size` writable bytes that end right before an inaccessible page (so a size that is a multiple of
// 64 starts on a line); another such page lies before the start, not always directly.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t size);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  std::span<std::byte> bytes() const { return {start_, size_}; }

 private:
  std::byte* mapping_;
  std::byte* start_;
  size_t mapping_size_, size_;
};

// A packed matrix with its memory. Packed bytes end at a guard page.
struct PackedWeights {
  explicit PackedWeights(DType type, int32_t rows, int32_t cols, std::span<const std::byte> file);
  GuardedBuffer memory;
  PackedMatrix matrix;
};

inline void PrintTo(DType type, std::ostream* out) { *out << TraitsOf(type).name; }

inline constexpr DType kQuantTypes[] = {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                        DType::kQ8_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};
inline constexpr DType kFloatTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

// Bytes of `cols` elements of a row.
inline size_t RowBytes(DType type, int32_t cols) {
  const DTypeTraits& t = TraitsOf(type);
  return static_cast<size_t>(cols / t.block_elements) * static_cast<size_t>(t.block_bytes);
}

// Bits of floats, for equality that NaN and signs of zero take part in.
std::vector<uint32_t> BitsOf(std::span<const float> values);

}  // namespace quire
