#include "tests/testing/random_matrix.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "absl/log/check.h"

namespace quire {
namespace {

// Where the scales of a quantised block are, and what value they need for the wanted spread: the
// codes are random bytes, whose spread about their centre is known.
struct ScalePlace {
  DType type;
  int32_t d_offset, min_offset;  // bytes in the block of the f16 d and of m or dmin; -1 = none
  double code_spread;            // standard deviation of value / d
  double min_per_d;              // m / d or dmin / d that centres the values
};
constexpr ScalePlace kPlaces[] = {
    {DType::kQ4_0, 0, -1, 4.6, 0},   {DType::kQ4_1, 0, 2, 4.6, -7.5},
    {DType::kQ5_0, 0, -1, 9.2, 0},   {DType::kQ5_1, 0, 2, 9.2, -15.5},
    {DType::kQ8_0, 0, -1, 74, 0},    {DType::kQ4_K, 0, 2, 250, 7.5},
    {DType::kQ5_K, 0, 2, 500, 15.5}, {DType::kQ6_K, 208, -1, 1370, 0},
};

void PutHalf(std::byte* at, double value) {
  const _Float16 half = static_cast<_Float16>(value);
  std::memcpy(at, &half, sizeof half);
}

void PutFloat(DType type, float value, std::byte* at) {
  if (type == DType::kF32) {
    std::memcpy(at, &value, sizeof value);
  } else if (type == DType::kF16) {
    PutHalf(at, static_cast<double>(value));
  } else {
    const uint16_t upper = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    std::memcpy(at, &upper, sizeof upper);
  }
}

}  // namespace

std::vector<std::byte> RandomMatrix(DType type, int32_t rows, int32_t cols,
                                    std::mt19937_64& random) {
  const DTypeTraits& traits = TraitsOf(type);
  CHECK_EQ(cols % traits.block_elements, 0);
  const size_t blocks = static_cast<size_t>(rows) * (cols / traits.block_elements);
  std::vector<std::byte> bytes(blocks * traits.block_bytes);
  const double spread = 1.0 / std::sqrt(cols);
  if (traits.block_elements == 1) {
    std::normal_distribution<float> normal(0.0f, static_cast<float>(spread));
    for (size_t i = 0; i < blocks; ++i)
      PutFloat(type, normal(random), &bytes[i * traits.block_bytes]);
    return bytes;
  }
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xff);
  std::uniform_real_distribution<double> vary(0.5, 1.5);
  for (const ScalePlace& place : kPlaces) {
    if (place.type != type) continue;
    for (size_t i = 0; i < blocks; ++i) {
      std::byte* block = &bytes[i * traits.block_bytes];
      const double d = spread / place.code_spread * vary(random);
      PutHalf(block + place.d_offset, d);
      if (place.min_offset >= 0) PutHalf(block + place.min_offset, d * place.min_per_d);
    }
  }
  return bytes;
}

}  // namespace quire
