#include "runtime/base/mix_bits.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(MixBits, GivesThePublishedNumbersOfSplitmix64) {
  EXPECT_EQ(MixBits(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(MixBits(0x9e3779b97f4a7c15u), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(MixBits(2 * 0x9e3779b97f4a7c15u), 0x06c45d188009454fu);
}

}  // namespace
}  // namespace quire
