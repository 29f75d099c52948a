// The vector code of one attention tile: accuracy of exp2, equal bits on every instruction set,
// products equal to sequential fma.
#include "runtime/kernels/attention_tiles.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<IsaLevel> IsasHere() {
  std::vector<IsaLevel> isas = {IsaLevel::kScalar};
  if (DetectedIsa() >= IsaLevel::kAvx2) isas.push_back(IsaLevel::kAvx2);
  if (DetectedIsa() >= IsaLevel::kAvx512) isas.push_back(IsaLevel::kAvx512);
  return isas;
}

std::vector<float> Noise(size_t count, uint32_t seed, float scale) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(rng);
  return values;
}

bool SameBytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(AttentionTiles, RunsOnEveryInstructionSetOfThisProcessor) {
  if (DetectedIsa() < IsaLevel::kAvx512)
    GTEST_SKIP() << "no AVX-512 here: its tile code is not run";
  EXPECT_EQ(IsasHere().size(), 3u);
}

TEST(AttentionTiles, Exp2IsWithinTwoUlp) {
  std::vector<float> x;
  for (int32_t i = 0; i < 16 * 20000; ++i)
    x.push_back(-126.0f + 134.0f * static_cast<float>(i) / (16 * 20000));
  for (IsaLevel isa : IsasHere()) {
    std::vector<float> y(x.size());
    AttentionTilesFor(isa).exp2(x.data(), static_cast<int32_t>(x.size()), y.data());
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp2(static_cast<double>(x[i]));
      const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
      worst = std::max(worst, std::abs(y[i] - exact) / ulp);
    }
    EXPECT_LE(worst, 2.0) << IsaName(isa);
  }
}

TEST(AttentionTiles, Exp2OfSpecialValues) {
  for (IsaLevel isa : IsasHere()) {
    std::vector<float> x = {0.0f,
                            1.0f,
                            -1.0f,
                            8.0f,
                            -126.0f,
                            -126.5f,
                            -200.0f,
                            -1e30f,
                            -kInf,
                            kNaN,
                            std::bit_cast<float>(0x7f812345u),
                            -0.0f,
                            -3.0f,
                            2.0f,
                            -125.0f,
                            7.0f};
    std::vector<float> y(16);
    AttentionTilesFor(isa).exp2(x.data(), 16, y.data());
    const std::vector<float> expected = {1, 2, 0.5f, 256, 0x1p-126f, 0, 0, 0, 0};
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(y[i], expected[i]) << x[i];
    EXPECT_TRUE(std::isnan(y[9]) && std::isnan(y[10]));
    EXPECT_EQ(y[11], 1.0f);
  }
}

TEST(AttentionTiles, SoftmaxAndFoldGiveTheSameBitsOnEverySet) {
  constexpr int32_t kRows = 9, kStride = 48;
  std::vector<std::vector<float>> results;
  for (IsaLevel isa : IsasHere()) {
    const AttentionTiles& tiles = AttentionTilesFor(isa);
    std::vector<float> result;
    std::vector<float> m(2 * kRows, -kInf), l(2 * kRows, 0.0f),
        o = Noise(2 * kRows * kStride, 3, 1.0f);
    const AttentionState first = {m.data(), l.data(), o.data(), kStride};
    const AttentionState second = {m.data() + kRows, l.data() + kRows, o.data() + kRows * kStride,
                                   kStride};
    for (int32_t visible : {64, 40, 1, -2, 70}) {
      for (const AttentionState& state : {first, second}) {
        std::vector<float> s = Noise(kRows * 64, 40 + visible, 9.0f);
        tiles.softmax({.s = s.data(), .rows = kRows, .visible = visible, .group = 3}, state);
        result.insert(result.end(), s.begin(), s.end());
      }
    }
    tiles.fold(kRows, first, second);
    std::vector<float> out(33);
    tiles.finish(2, 33, first, out.data());
    for (const std::vector<float>* part : {&m, &l, &o, &out})
      result.insert(result.end(), part->begin(), part->end());
    results.push_back(result);
  }
  for (const std::vector<float>& result : results) EXPECT_TRUE(SameBytes(result, results[0]));
}

// A row that saw nothing before takes a chunk's state over to the bit, as if it were its first.
TEST(AttentionTiles, FoldIntoAnEmptyStateCopies) {
  for (IsaLevel isa : IsasHere()) {
    std::vector<float> m = {-kInf, 3.5f}, l = {0.0f, 1e-40f}, o = Noise(32, 8, 1.0f);
    std::fill_n(o.begin(), 16, 0.0f);
    o[17] = -0.0f;
    o[18] = -1e-41f;
    const AttentionState state = {m.data(), l.data(), o.data(), 16};
    AttentionTilesFor(isa).fold(1, state, {m.data() + 1, l.data() + 1, o.data() + 16, 16});
    EXPECT_EQ(m[0], m[1]);
    EXPECT_EQ(l[0], l[1]);
    EXPECT_EQ(std::memcmp(o.data(), o.data() + 16, 16 * sizeof(float)), 0) << IsaName(isa);
  }
}

TEST(AttentionTiles, MaskedTokensGetWeightZeroWhateverTheyHold) {
  for (IsaLevel isa : IsasHere()) {
    std::vector<float> s(2 * 64, kNaN), o(2 * 16, 0.0f), m(2, -kInf), l(2, 0.0f);
    s[0] = s[64] = s[65] = 1.0f;
    AttentionTilesFor(isa).softmax({.s = s.data(), .rows = 2, .visible = 1, .group = 1},
                                   {m.data(), l.data(), o.data(), 16});
    std::vector<float> expected(2 * 64, 0.0f);
    expected[0] = expected[64] = expected[65] = 1.0f;
    EXPECT_EQ(s, expected);
    EXPECT_EQ(l, (std::vector<float>{1.0f, 2.0f}));
  }
}

TEST(AttentionTiles, OwnProductsEqualSequentialFmaOnEverySet) {
  for (int32_t depth : {32, 64, 80, 256}) {
    for (int32_t width : {16, 48, 64}) {
      // bf16 operand in pairs, the same values as plain f32.
      std::vector<float> plain(depth * width);
      std::vector<uint16_t> paired(depth * width);
      const std::vector<float> values = Noise(depth * width, depth + width, 1.0f);
      for (int32_t k = 0; k < depth; ++k) {
        for (int32_t n = 0; n < width; ++n) {
          const uint32_t bits = std::bit_cast<uint32_t>(values[k * width + n]) & 0xffff0000u;
          plain[k * width + n] = std::bit_cast<float>(bits);
          paired[(k / 2 * width + n) * 2 + k % 2] = static_cast<uint16_t>(bits >> 16);
        }
      }
      for (int32_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 13}) {
        for (bool add : {false, true}) {
          const std::vector<float> a = Noise(rows * depth, 7, 1.0f),
                                   start = Noise(rows * (width + 5), 9, 1.0f);
          std::vector<float> expected = start;
          TileProduct p = {.a = a.data(),
                           .lda = depth,
                           .b = reinterpret_cast<const std::byte*>(plain.data()),
                           .ldb = width,
                           .depth = depth,
                           .width = width,
                           .c = expected.data(),
                           .ldc = width + 5,
                           .rows = rows,
                           .add = add,
                           .prefetch = {}};
          SequentialProduct(p);
          for (IsaLevel isa : IsasHere()) {
            std::vector<float> got = start;
            p.c = got.data();
            p.b = reinterpret_cast<const std::byte*>(paired.data());
            p.prefetch = {
                .start = p.b, .rows = depth / 2, .row_bytes = width * 4, .stride = width * 4};
            AttentionTilesFor(isa).product(p);
            EXPECT_TRUE(SameBytes(got, expected))
                << IsaName(isa) << " " << rows << "x" << width << "x" << depth;
          }
        }
      }
    }
  }
}

TEST(AttentionTiles, WidenKeepsEveryPattern) {
  for (IsaLevel isa : IsasHere()) {
    for (int32_t width : {16, 40, 64}) {
      constexpr int32_t kDepth = 6;
      std::vector<uint16_t> paired(kDepth * width);
      for (size_t i = 0; i < paired.size(); ++i) paired[i] = static_cast<uint16_t>(i * 40503u);
      std::vector<float> wide(kDepth * width);
      AttentionTilesFor(isa).widen(reinterpret_cast<const std::byte*>(paired.data()), kDepth, width,
                                   width, wide.data());
      for (int32_t k = 0; k < kDepth; ++k) {
        for (int32_t n = 0; n < width; ++n) {
          const uint32_t expected = static_cast<uint32_t>(paired[(k / 2 * width + n) * 2 + k % 2])
                                    << 16;
          EXPECT_EQ(std::bit_cast<uint32_t>(wide[k * width + n]), expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire
