// f16 and bf16 as bits <-> f32, in integer arithmetic: exact, and unaffected by flush-to-zero
// modes. Any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace quire {

constexpr float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 31, fraction = half & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (fraction << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  if (fraction == 0) return std::bit_cast<float>(sign);
  const int shift = std::countl_zero(fraction) - 21;  // brings the leading one to bit 10
  return std::bit_cast<float>(sign | (static_cast<uint32_t>(113 - shift) << 23) |
                              (((fraction << shift) & 0x3ff) << 13));
}

constexpr float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Round to nearest, ties to even; NaN stays NaN.
constexpr uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace quire
