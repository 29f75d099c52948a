// RMSNorm, SwiGLU and rotary positions: against double precision, and the same bits on every
// Highway target.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "runtime/kernels/rms_norm.h"
#include "runtime/kernels/rope.h"
#include "runtime/kernels/swiglu.h"
#include "tests/runtime/kernels/all_targets.h"

namespace quire {
namespace {

std::vector<float> RandomRow(int32_t count, uint64_t seed, float scale = 1.0f) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> row(count);
  for (float& v : row) v = normal(random);
  return row;
}

class RmsNormWidth : public testing::TestWithParam<int32_t> {};

TEST_P(RmsNormWidth, MatchesDoublePrecision) {
  const int32_t n = GetParam();
  const std::vector<float> x = RandomRow(n, 1, 3.0f), w = RandomRow(n, 2);
  std::vector<float> out(n);
  RmsNorm(x.data(), w.data(), 1e-5f, n, out.data());
  double sum = 0;
  for (float v : x) sum += double{v} * v;
  const double scale = 1 / std::sqrt(sum / n + 1e-5);
  for (int32_t i = 0; i < n; ++i)
    EXPECT_NEAR(out[i], x[i] * scale * w[i], 1e-6 * std::abs(x[i] * scale * w[i]) + 1e-12);
}

TEST_P(RmsNormWidth, GivesTheSameBitsOnEveryTarget) {
  const int32_t n = GetParam();
  const std::vector<float> x = RandomRow(n, 3, 5.0f), w = RandomRow(n, 4);
  ExpectSameBitsOnAllTargets([&] {
    std::vector<float> out(n);
    RmsNorm(x.data(), w.data(), 1e-6f, n, out.data());
    return out;
  });
}

INSTANTIATE_TEST_SUITE_P(Widths, RmsNormWidth, testing::Values(1, 7, 16, 31, 48, 576, 4096));

TEST(RmsNorm, WorksInPlace) {
  std::vector<float> x = RandomRow(96, 5), w = RandomRow(96, 6), out(96);
  RmsNorm(x.data(), w.data(), 1e-5f, 96, out.data());
  RmsNorm(x.data(), w.data(), 1e-5f, 96, x.data());
  EXPECT_EQ(x, out);
}

TEST(RmsNorm, OneNanMakesTheWholeRowNan) {
  std::vector<float> x = RandomRow(64, 5), w(64, 1.0f), out(64);
  x[13] = std::nanf("");
  RmsNorm(x.data(), w.data(), 1e-5f, 64, out.data());
  for (float v : out) EXPECT_TRUE(std::isnan(v));
}

TEST(AddTo, AddsEveryElementOnEveryTarget) {
  for (int32_t n : {1, 15, 16, 47}) {
    const std::vector<float> x = RandomRow(n, 7), d = RandomRow(n, 8);
    ExpectSameBitsOnAllTargets([&] {
      std::vector<float> sum = x;
      AddTo(sum.data(), d.data(), n);
      for (int32_t i = 0; i < n; ++i) EXPECT_EQ(sum[i], x[i] + d[i]);
      return sum;
    });
  }
}

TEST(SwiGlu, MatchesDoublePrecision) {
  std::vector<float> gate, up;
  for (float g = -90.0f; g <= 90.0f; g += 0.37f) {
    gate.push_back(g);
    up.push_back(g * 0.5f - 1);
  }
  std::vector<float> out(gate.size());
  SwiGlu(gate.data(), up.data(), static_cast<int32_t>(gate.size()), out.data());
  for (size_t i = 0; i < gate.size(); ++i) {
    const double expected = gate[i] / (1 + std::exp(-double{gate[i]})) * up[i];
    // The exponent -g log2(e) is rounded once, so the error grows with |g|; beyond 88 the result is
    // zero.
    const double relative = 1e-6 + 1e-7 * std::abs(gate[i]);
    EXPECT_NEAR(out[i], expected, relative * std::abs(expected) + 1e-34) << gate[i];
  }
}

TEST(SwiGlu, ExtremesKeepTheirMeaning) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> gate = {1e30f, -1e30f, kInf, std::nanf(""), 1.0f, 0.0f, -200.0f};
  const std::vector<float> up = {1.0f, 1.0f, 1.0f, 1.0f, std::nanf(""), 3.0f, 1.0f};
  std::vector<float> out(gate.size());
  SwiGlu(gate.data(), up.data(), static_cast<int32_t>(gate.size()), out.data());
  EXPECT_EQ(out[0], 1e30f);
  EXPECT_EQ(out[1], 0.0f);
  EXPECT_EQ(out[2], kInf);
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_TRUE(std::isnan(out[4]));
  EXPECT_EQ(out[5], 0.0f);
  EXPECT_EQ(out[6], 0.0f);
}

TEST(SwiGlu, GivesTheSameBitsOnEveryTarget) {
  for (int32_t n : {1, 9, 32, 333}) {
    const std::vector<float> gate = RandomRow(n, 9, 20.0f), up = RandomRow(n, 10);
    ExpectSameBitsOnAllTargets([&] {
      std::vector<float> out(n);
      SwiGlu(gate.data(), up.data(), n, out.data());
      return out;
    });
  }
}

struct RopeCase {
  RopePairs pairs;
  int32_t dims, head_dim;
};
class Rope : public testing::TestWithParam<RopeCase> {
 protected:
  RopeOptions Options() const {
    return {.pairs = GetParam().pairs,
            .dims = GetParam().dims,
            .context_tokens = 9000,
            .theta = 100000.0,
            .scale = 1.0,
            .factors = {}};
  }
};

TEST_P(Rope, RotatesPairsByTheirAngles) {
  const RopeCase& c = GetParam();
  RopeOptions options = Options();
  options.scale = 2.0;
  std::vector<float> factors(c.dims / 2);
  for (int32_t i = 0; i < c.dims / 2; ++i) factors[i] = 1.0f + 0.25f * static_cast<float>(i % 4);
  options.factors = factors;
  const RopeTable table(options);
  std::vector<float> row(2 * c.dims);
  for (int32_t position : {0, 1, 63, 64, 65, 1000, 8999}) {
    const std::vector<float> x = RandomRow(2 * c.head_dim, position + 1);
    std::vector<float> y = x;
    table.FillRow(position, row.data());
    ApplyRope(table, row.data(), {y.data(), 2, c.head_dim});
    for (int32_t head = 0; head < 2; ++head) {
      const float* in = x.data() + head * c.head_dim;
      const float* out = y.data() + head * c.head_dim;
      for (int32_t i = 0; i < c.dims / 2; ++i) {
        const bool interleaved = c.pairs == RopePairs::kInterleaved;
        const int32_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + c.dims / 2;
        const double angle = position / 2.0 * std::pow(100000.0, -2.0 * i / c.dims) / factors[i];
        EXPECT_NEAR(out[a], in[a] * std::cos(angle) - in[b] * std::sin(angle), 1e-6) << position;
        EXPECT_NEAR(out[b], in[b] * std::cos(angle) + in[a] * std::sin(angle), 1e-6) << position;
      }
      for (int32_t i = c.dims; i < c.head_dim; ++i) EXPECT_EQ(out[i], in[i]);
    }
  }
}

TEST_P(Rope, PositionZeroChangesNothing) {
  const RopeTable table(Options());
  std::vector<float> row(2 * GetParam().dims);
  table.FillRow(0, row.data());
  const std::vector<float> x = RandomRow(GetParam().head_dim, 1);
  std::vector<float> y = x;
  ApplyRope(table, row.data(), {y.data(), 1, GetParam().head_dim});
  EXPECT_EQ(x, y);
}

TEST_P(Rope, GivesTheSameBitsOnEveryTarget) {
  const RopeTable table(Options());
  std::vector<float> row(2 * GetParam().dims);
  table.FillRow(777, row.data());
  const std::vector<float> x = RandomRow(3 * GetParam().head_dim, 1);
  ExpectSameBitsOnAllTargets([&] {
    std::vector<float> y = x;
    ApplyRope(table, row.data(), {y.data(), 3, GetParam().head_dim});
    return y;
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, Rope,
                         testing::Values(RopeCase{RopePairs::kInterleaved, 64, 64},
                                         RopeCase{RopePairs::kInterleaved, 20, 40},
                                         RopeCase{RopePairs::kHalfSplit, 64, 64},
                                         RopeCase{RopePairs::kHalfSplit, 26, 32}));

}  // namespace
}  // namespace quire
