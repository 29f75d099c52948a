// The Hadamard transform against its definition.
#include "runtime/kernels/hadamard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/runtime/kernels/all_targets.h"

namespace quire {
namespace {

std::vector<float> RandomRow(int32_t count) {
  std::mt19937 random(static_cast<uint32_t>(count));
  std::normal_distribution<float> normal;
  std::vector<float> row(count);
  for (float& x : row) x = normal(random);
  return row;
}

// Element (i, j) of the matrix is -1 to the number of bits that i and j share.
std::vector<double> ByDefinition(const std::vector<float>& x, int32_t block) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t start = i / block * block;
    for (size_t j = start; j < start + block; ++j)
      y[i] += std::popcount((i - start) & (j - start)) % 2 == 0 ? x[j] : -x[j];
  }
  return y;
}

class Hadamard : public testing::TestWithParam<int32_t> {};

TEST_P(Hadamard, MatchesTheMatrixOnBlocksOfTheLargestPowerOfTwo) {
  std::vector<float> x = RandomRow(GetParam());
  const int32_t block = HadamardBlock(GetParam());
  ASSERT_EQ(GetParam() % block, 0);
  ASSERT_NE(GetParam() % (2 * block), 0);
  const std::vector<double> expected = ByDefinition(x, block);
  HadamardInPlace(x.data(), GetParam());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], expected[i], 2e-5) << i;
}

TEST_P(Hadamard, KeepsDotProductsButForTheBlockLength) {
  std::vector<float> x = RandomRow(GetParam()), y = RandomRow(GetParam());
  std::reverse(y.begin(), y.end());
  double before = 0, after = 0;
  for (size_t i = 0; i < x.size(); ++i) before += double{x[i]} * y[i];
  HadamardInPlace(x.data(), GetParam());
  HadamardInPlace(y.data(), GetParam());
  for (size_t i = 0; i < x.size(); ++i) after += double{x[i]} * y[i];
  EXPECT_NEAR(after / HadamardBlock(GetParam()), before, 1e-4);
}

TEST_P(Hadamard, GivesTheSameBitsOnEveryTarget) {
  ExpectSameBitsOnAllTargets([&] {
    std::vector<float> x = RandomRow(GetParam());
    HadamardInPlace(x.data(), GetParam());
    return x;
  });
}

TEST_P(Hadamard, SpreadsOneElementEvenlyOverItsBlock) {
  const int32_t count = GetParam(), block = HadamardBlock(count);
  for (int32_t hot = 0; hot < count; ++hot) {
    std::vector<float> x(count);
    x[hot] = 3.0f;
    HadamardInPlace(x.data(), count);
    for (int32_t i = 0; i < count; ++i)
      ASSERT_EQ(std::abs(x[i]), i / block == hot / block ? 3.0f : 0.0f) << hot << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, Hadamard,
                         testing::Values(2, 4, 6, 8, 16, 24, 32, 40, 48, 64, 80, 96, 128, 256));

TEST(Hadamard, SpreadsNaNSoThatTheRowStaysNotFinite) {
  std::vector<float> x(64, 1.0f);
  x[17] = std::numeric_limits<float>::quiet_NaN();
  HadamardInPlace(x.data(), 64);
  for (const float v : x) EXPECT_TRUE(std::isnan(v));
}

}  // namespace
}  // namespace quire
