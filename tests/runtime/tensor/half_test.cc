#include "runtime/tensor/half.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(Half, EveryFiniteValueIsExact) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>((bits >> 10) & 31),
              fraction = static_cast<int>(bits & 0x3ff);
    if (exponent == 31) continue;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    const double wanted = (bits & 0x8000) != 0 ? -magnitude : magnitude;
    const float got = HalfToFloat(static_cast<uint16_t>(bits));
    ASSERT_EQ(static_cast<double>(got), wanted) << bits;
    ASSERT_EQ(std::signbit(got), (bits & 0x8000) != 0) << bits;
  }
}

TEST(Half, InfinityAndNanSurvive) {
  EXPECT_EQ(HalfToFloat(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(HalfToFloat(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7e01)));
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, even below
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, even above
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(BFloat16, EveryValueComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = BFloat16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(value)))) << bits;
    } else {
      ASSERT_EQ(FloatToBFloat16(value), bits);
    }
  }
}

}  // namespace
}  // namespace quire
