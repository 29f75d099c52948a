#include "runtime/kernels/quantize.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/kernels/quant_blocks.h"

namespace quire {
namespace {

struct Quantized {
  std::vector<int8_t> q;
  std::vector<ActScale> scales;
};

Quantized QuantizeAt(IsaLevel isa, const std::vector<float>& x) {
  Quantized out{std::vector<int8_t>(x.size()), std::vector<ActScale>(x.size() / kQuantBlock)};
  QuantizerOf(isa)(x.data(), static_cast<int32_t>(x.size() / kQuantBlock), out.q.data(),
                   out.scales.data());
  return out;
}

void ExpectSameBits(const Quantized& a, const Quantized& b) {
  EXPECT_EQ(a.q, b.q);
  ASSERT_EQ(a.scales.size(), b.scales.size());
  for (size_t i = 0; i < a.scales.size(); ++i) {
    const ActScale &s = a.scales[i], &t = b.scales[i];
    EXPECT_EQ(BitsOf(std::vector<float>{s.d, s.d_sum}), BitsOf(std::vector<float>{t.d, t.d_sum}))
        << i;
    EXPECT_EQ(s.neg_sum, t.neg_sum);
    EXPECT_EQ(s.neg_sum_lo, t.neg_sum_lo);
  }
}

std::vector<float> HardInputs() {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal;
  std::vector<float> x(64 * kQuantBlock);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = normal(rng) * std::exp2(static_cast<float>(i / kQuantBlock) * 4 - 130);
  const auto block = [&](int b, auto value_of) {
    for (int i = 0; i < kQuantBlock; ++i) x[static_cast<size_t>(b * kQuantBlock + i)] = value_of(i);
  };
  block(40, [](int) { return 0.0f; });
  block(41, [](int i) { return i % 2 == 0 ? 3.0f : -3.0f; });
  block(42, [](int i) { return i == 31 ? 1e30f : 1.0f; });
  block(43, [](int i) { return static_cast<float>(i) - 15.5f; });  // halves: ties of the rounding
  block(44, [](int i) { return i == 3 ? -127.0f : static_cast<float>(i) + 0.5f; });
  block(45, [](int) { return std::numeric_limits<float>::denorm_min(); });
  block(46, [](int i) { return i == 0 ? std::numeric_limits<float>::max() : 1.0f; });
  block(47, [](int i) { return i == 17 ? std::numeric_limits<float>::quiet_NaN() : 1.0f; });
  block(48, [](int i) { return i == 31 ? -std::numeric_limits<float>::infinity() : 1.0f; });
  block(49, [](int) { return std::exp2(-100.0f); });
  block(50, [](int) { return std::nextafter(std::exp2(-100.0f), 0.0f); });
  block(51, [](int) { return -0.0f; });
  block(53, [](int i) { return i == 0 ? std::numeric_limits<float>::max() : 1.0f; });
  return x;
}

TEST(Quantize, EveryLevelGivesTheScalarBits) {
  if (DetectedIsa() == IsaLevel::kScalar)
    GTEST_SKIP() << "this processor has the scalar level only";
  const std::vector<float> all = HardInputs();
  // From the second block on, an odd number: levels that take blocks in pairs pair others.
  for (const std::vector<float>& x : {all, std::vector(all.begin() + kQuantBlock, all.end())}) {
    const Quantized scalar = QuantizeAt(IsaLevel::kScalar, x);
    for (int level = 1; level <= static_cast<int>(DetectedIsa()); ++level) {
      SCOPED_TRACE(std::string(IsaName(IsaLevel{level})));
      ExpectSameBits(QuantizeAt(IsaLevel{level}, x), scalar);
    }
  }
}

TEST(Quantize, CodesStayWithin127AndScalesFitTheirBlock) {
  const std::vector<float> x = HardInputs();
  const Quantized quantized = QuantizeAt(ActiveIsa(), x);
  for (size_t b = 0; b < quantized.scales.size(); ++b) {
    const ActScale& s = quantized.scales[b];
    int32_t sum = 0, low = 0;
    for (size_t i = 0; i < kQuantBlock; ++i) {
      const int32_t q = quantized.q[b * kQuantBlock + i];
      EXPECT_GE(q, -127);
      EXPECT_LE(q, 127);
      sum += q;
      if (i < 16) low += q;
      if (s.d > 0) {
        // Half a step, plus the rounding of x / d and d themselves.
        EXPECT_LE(
            std::abs(static_cast<double>(x[b * kQuantBlock + i]) - static_cast<double>(s.d) * q),
            static_cast<double>(s.d) * 0.5001)
            << b;
      }
    }
    EXPECT_EQ(s.neg_sum, -sum);
    EXPECT_EQ(s.neg_sum_lo, -low);
  }
}

TEST(Quantize, ZeroAndTinyBlocksAreZero) {
  const Quantized quantized = QuantizeAt(ActiveIsa(), HardInputs());
  for (const size_t b : {40u, 45u, 50u, 51u}) {
    EXPECT_EQ(quantized.scales[b].d, 0.0f) << b;
    EXPECT_EQ(quantized.scales[b].neg_sum, 0) << b;
  }
  EXPECT_GT(quantized.scales[49].d, 0.0f);
}

TEST(Quantize, NanAndInfinityMakeTheBlockNan) {
  const Quantized quantized = QuantizeAt(ActiveIsa(), HardInputs());
  for (const size_t b : {47u, 48u}) {
    EXPECT_TRUE(std::isnan(quantized.scales[b].d)) << b;
    EXPECT_TRUE(std::isnan(quantized.scales[b].d_sum)) << b;
  }
  EXPECT_FALSE(std::isnan(quantized.scales[46].d));
}

TEST(Quantize, ColumnsAndRowsAgree) {
  const int32_t rows = 3, cols = 160;
  const std::vector<float> all = HardInputs();
  const std::vector<float> x(all.begin() + 30 * kQuantBlock,
                             all.begin() + 30 * kQuantBlock + rows * cols);
  const GuardedBuffer whole_memory(ActBufferBytes(rows, cols)),
      parts_memory(ActBufferBytes(rows, cols));
  const ActRows whole = MakeActRows(whole_memory.bytes(), rows, cols, x.data(), cols);
  const ActRows parts = MakeActRows(parts_memory.bytes(), rows, cols);
  QuantizeRows(whole, 0, rows);
  for (int32_t row = 0; row < rows; ++row) {
    for (const int32_t col : {64, 0, 96, 32, 128})
      QuantizeColumns(x.data() + row * cols + col, parts, row, col, 32);
    const auto read = [&](const ActRows& act) {
      const int8_t* q = act.q + row * act.q_stride;
      const ActScale* s = act.scales + row * act.scale_stride;
      return Quantized{{q, q + cols}, {s, s + cols / kQuantBlock}};
    };
    ExpectSameBits(read(whole), read(parts));
  }
}

TEST(ActRows, SliceStartsAtItsRow) {
  std::vector<float> x(4 * 64);
  const GuardedBuffer memory(ActBufferBytes(4, 64));
  const ActRows act = MakeActRows(memory.bytes(), 4, 64, x.data(), 64);
  const ActRows slice = act.Slice(1, 2);
  EXPECT_EQ(slice.rows, 2);
  EXPECT_EQ(slice.f32, x.data() + 64);
  EXPECT_EQ(slice.q, act.q + act.q_stride);
  EXPECT_EQ(slice.scales, act.scales + act.scale_stride);
}

}  // namespace
}  // namespace quire
