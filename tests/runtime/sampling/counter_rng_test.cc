#include "runtime/sampling/counter_rng.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

using Words = std::array<uint32_t, 4>;

// From kat_vectors of the authors' Random123 distribution.
TEST(CounterRng, MatchesThePublishedVectors) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(Philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRng, KeysADrawBySeedOutputAndPosition) {
  const double u = UniformAt(7, 1, 2);
  EXPECT_EQ(u, UniformAt(7, 1, 2));
  EXPECT_NE(u, UniformAt(8, 1, 2));
  EXPECT_NE(u, UniformAt(7, 2, 1));
  EXPECT_NE(u, UniformAt(7 + (uint64_t{1} << 32), 1, 2));
}

TEST(CounterRng, TakesTheFirstTwoWordsLowFirst) {
  const uint64_t word = 0x6627e8d5u | (uint64_t{0xe169c58d} << 32);
  EXPECT_EQ(UniformAt(0, 0, 0), static_cast<double>(word >> 11) * 0x1p-53);
}

TEST(CounterRng, FillsTheUnitIntervalEvenly) {
  int32_t bins[16] = {};
  for (int32_t position = 0; position < 16000; ++position) {
    const double u = UniformAt(3, 0, position);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++bins[static_cast<int32_t>(u * 16)];
  }
  double chi = 0;
  for (const int32_t n : bins) chi += (n - 1000.0) * (n - 1000.0) / 1000.0;
  EXPECT_LT(chi, 37.7);  // 15 degrees of freedom, p = 0.001
}

}  // namespace
}  // namespace quire
