// The integer products: every instruction set against plain loops, and the rounding of queries and
// weights.
#include "runtime/kernels/attention_int.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/tensor/half.h"

namespace quire {
namespace {

std::vector<IsaLevel> IsasHere() {
  std::vector<IsaLevel> isas;
  for (IsaLevel isa : {IsaLevel::kScalar, IsaLevel::kAvx2, IsaLevel::kAvx512}) {
    if (isa <= DetectedIsa()) isas.push_back(isa);
  }
  return isas;
}

constexpr int32_t kLimit = 32767;
static_assert(OperandLimit(127, 256) == kLimit && OperandLimit(2047, 64) == 16392);

struct Operands {
  std::vector<int16_t> a, wide;
  std::vector<int8_t> b;
  std::vector<float> row_scale, start;
  std::vector<uint16_t> column_scale;
};

// `extreme`: everything at its largest magnitude, with one sign for the sums to grow.
Operands Make(int32_t rows, int32_t depth, int32_t width, bool extreme) {
  std::mt19937 rng(static_cast<uint32_t>(rows * depth + width));
  Operands o;
  for (int32_t i = 0; i < rows * depth; ++i)
    o.a.push_back(
        static_cast<int16_t>(extreme ? -kLimit : static_cast<int32_t>(rng() % 65535) - 32767));
  for (int32_t i = 0; i < depth * width; ++i)
    o.b.push_back(static_cast<int8_t>(extreme ? 127 : static_cast<int32_t>(rng() % 255) - 127));
  o.wide.assign(o.b.begin(), o.b.end());
  for (int32_t i = 0; i < rows; ++i) o.row_scale.push_back(1e-3f * static_cast<float>(i + 1));
  for (int32_t i = 0; i < width; ++i)
    o.column_scale.push_back(FloatToBFloat16(0.37f * static_cast<float>(i + 1)));
  for (int32_t i = 0; i < rows * (width + 3); ++i) o.start.push_back(0.01f * static_cast<float>(i));
  return o;
}

TEST(AttentionInt, ProductsEqualPlainLoopsOnEverySet) {
  for (int32_t depth : {2, 16, 64, 80, 256}) {
    for (int32_t width : {2, 16, 40, 64}) {
      for (int32_t rows : {1, 2, 3, 5, 6, 7, 13, 48}) {
        for (bool extreme : {false, true}) {
          const Operands o = Make(rows, depth, width, extreme);
          for (bool add : {false, true}) {
            IntProduct p = {.a = o.a.data(),
                            .lda = depth,
                            .row_scale = o.row_scale.data(),
                            .b = reinterpret_cast<const std::byte*>(o.b.data()),
                            .ldb = width,
                            .b_s16 = false,
                            .depth = depth,
                            .width = width,
                            .column_scale = add ? nullptr : o.column_scale.data(),
                            .c = nullptr,
                            .ldc = width + 3,
                            .rows = rows,
                            .prefetch = {}};
            std::vector<float> expected = o.start;
            p.c = expected.data();
            SequentialIntProduct(p);
            for (IsaLevel isa : IsasHere()) {
              for (bool wide : {false, true}) {
                std::vector<float> got = o.start;
                p.c = got.data();
                p.b = wide ? reinterpret_cast<const std::byte*>(o.wide.data())
                           : reinterpret_cast<const std::byte*>(o.b.data());
                p.b_s16 = wide;
                IntTilesFor(isa).product(p);
                ASSERT_EQ(got, expected) << IsaName(isa) << " " << rows << "x" << width << "x"
                                         << depth << " add " << add << " wide " << wide;
              }
            }
          }
        }
      }
    }
  }
}

TEST(AttentionInt, WidenKeepsEveryByte) {
  std::vector<int8_t> bytes;
  for (int32_t i = -128; i < 128; ++i) bytes.push_back(static_cast<int8_t>(i));
  for (IsaLevel isa : IsasHere()) {
    for (int32_t count : {2, 62, 256}) {
      std::vector<int16_t> wide(count);
      IntTilesFor(isa).widen(reinterpret_cast<const std::byte*>(bytes.data()), count, wide.data());
      EXPECT_TRUE(std::equal(wide.begin(), wide.end(), bytes.begin()));
    }
  }
}

TEST(AttentionInt, QueriesKeepFifteenBits) {
  std::mt19937 rng(4);
  std::normal_distribution<float> normal;
  for (int32_t count : {2, 40, 64, 256}) {
    std::vector<float> x(count);
    for (float& value : x) value = normal(rng);
    std::vector<int16_t> first;
    for (IsaLevel isa : IsasHere()) {
      std::vector<int16_t> q(count);
      float scale = 0;
      IntTilesFor(isa).quantize(x.data(), count, kLimit, q.data(), &scale);
      int32_t largest = 0;
      for (int32_t i = 0; i < count; ++i) {
        EXPECT_LE(std::abs(x[i] - static_cast<float>(q[i]) * scale), 0.51f * scale);
        largest = std::max(largest, std::abs(int32_t{q[i]}));
      }
      EXPECT_EQ(largest, kLimit);
      if (first.empty()) first = q;
      EXPECT_EQ(q, first) << IsaName(isa);
    }
  }
}

TEST(AttentionInt, RowsWithoutFiniteValuesBecomeNaN) {
  for (IsaLevel isa : IsasHere()) {
    for (float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      std::vector<float> x(70, 1.0f);
      x[69] = bad;
      std::vector<int16_t> q(70, 5);
      float scale = 0;
      IntTilesFor(isa).quantize(x.data(), 70, kLimit, q.data(), &scale);
      EXPECT_TRUE(std::isnan(scale));
      EXPECT_EQ(q, std::vector<int16_t>(70, 0));
    }
    std::vector<float> zero(16, 0.0f);
    std::vector<int16_t> q(16, 5);
    float scale = 1;
    IntTilesFor(isa).quantize(zero.data(), 16, kLimit, q.data(), &scale);
    EXPECT_EQ(scale, 0.0f);
    EXPECT_EQ(q, std::vector<int16_t>(16, 0));
  }
}

TEST(AttentionInt, AWeightOfZeroHidesItsScaleAndNoOther) {
  for (IsaLevel isa : IsasHere()) {
    std::vector<float> p(64, 0.0f);
    p[0] = 1.0f;
    p[63] = 0.5f;
    std::vector<uint16_t> scales(64, 0x7fc0);
    scales[0] = scales[63] = 0x3f80;
    std::vector<int16_t> q(64);
    float scale = 0;
    IntTilesFor(isa).quantize_weights(
        {.p = p.data(), .token_scales = scales.data(), .rows = 1, .limit = kLimit}, q.data(),
        &scale);
    EXPECT_EQ(scale, 1.0f / kLimit);
    EXPECT_EQ(q[0], kLimit);
    EXPECT_EQ(q[63], 16384);
    EXPECT_EQ(std::count(q.begin(), q.end(), 0), 62);
    scales[63] = 0x7fc0;
    IntTilesFor(isa).quantize_weights(
        {.p = p.data(), .token_scales = scales.data(), .rows = 1, .limit = kLimit}, q.data(),
        &scale);
    EXPECT_TRUE(std::isnan(scale));
  }
}

}  // namespace
}  // namespace quire
