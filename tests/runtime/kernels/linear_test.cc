#include "runtime/kernels/linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/kernels/linear_reference.h"
#include "tests/runtime/kernels/quant_blocks.h"

namespace quire {
namespace {

enum class Acts { kNormal, kAllPlus127, kAllMinus127, kAlternating, kZero, kOneOutlier };

// f32 rows and their quantised form; both end at guard pages.
class Activations {
 public:
  Activations(int32_t rows, int32_t cols, Acts kind, uint64_t seed = 1)
      : f32_(sizeof(float) * static_cast<size_t>(rows) * static_cast<size_t>(cols)),
        quantized_(ActBufferBytes(rows, cols)) {
    auto* x = reinterpret_cast<float*>(f32_.bytes().data());
    std::mt19937_64 rng(seed);
    std::normal_distribution<float> normal;
    for (int32_t i = 0; i < rows * cols; ++i) {
      switch (kind) {
        case Acts::kNormal:
          x[i] = normal(rng);
          break;
        case Acts::kAllPlus127:
          x[i] = 1.0f;
          break;
        case Acts::kAllMinus127:
          x[i] = -1.0f;
          break;
        case Acts::kAlternating:
          x[i] = i % 2 == 0 ? 1.0f : -1.0f;
          break;
        case Acts::kZero:
          x[i] = 0.0f;
          break;
        case Acts::kOneOutlier:
          x[i] = i % 32 == 5 ? 1000.0f : normal(rng);
          break;
      }
    }
    view = MakeActRows(quantized_.bytes(), rows, cols, x, cols);
    if (cols % kQuantBlock == 0) QuantizeRows(view, 0, rows);
  }
  ActRows view;

 private:
  GuardedBuffer f32_, quantized_;
};

std::vector<float> Product(IsaLevel isa, const PackedMatrix& w, const ActRows& act,
                           PanelRange panels) {
  const auto size = static_cast<size_t>(act.rows) * static_cast<size_t>(w.rows);
  const GuardedBuffer out(size * sizeof(float));
  std::memset(out.bytes().data(), 0xab,
              out.bytes().size());  // what a kernel does not write stays recognisable
  const GuardedBuffer scratch(LinearScratchBytes());
  auto* y = reinterpret_cast<float*>(out.bytes().data());
  LinearWith(LinearKernelsOf(isa), {w, panels, act, {y, w.rows}, scratch.bytes()});
  return {y, y + size};
}
std::vector<float> Product(IsaLevel isa, const PackedMatrix& w, const ActRows& act) {
  return Product(isa, w, act, {0, w.panels()});
}

// Scalar, and every level with kernels of its own that this machine has.
std::vector<IsaLevel> LevelsHere() {
  std::vector<IsaLevel> levels = {IsaLevel::kScalar};
  for (const IsaLevel isa : {IsaLevel::kAvx2, IsaLevel::kAvx512}) {
    if (isa <= DetectedIsa()) levels.push_back(isa);
  }
  return levels;
}

std::vector<DType> AllTypes() {
  std::vector<DType> types(std::begin(kQuantTypes), std::end(kQuantTypes));
  types.insert(types.end(), std::begin(kFloatTypes), std::end(kFloatTypes));
  return types;
}

std::vector<float> Reference(DType type, const std::vector<std::byte>& file, int32_t n,
                             const ActRows& act) {
  std::vector<float> y(static_cast<size_t>(act.rows) * static_cast<size_t>(n));
  const size_t row_bytes = RowBytes(type, act.cols);
  for (int32_t o = 0; o < n; ++o) {
    const auto row = std::span(file).subspan(row_bytes * static_cast<size_t>(o), row_bytes);
    WeightRow decoded;
    std::vector<float> values(static_cast<size_t>(act.cols));
    if (UsesQuantizedActivations(type)) {
      decoded = DecodeRow(type, row, act.cols);
    } else {
      DequantizeBlocks(type, row.data(), act.cols, values.data());
    }
    for (int32_t r = 0; r < act.rows; ++r) {
      const std::span<const float> x(act.f32 + r * act.f32_stride, static_cast<size_t>(act.cols));
      y[static_cast<size_t>(r) * static_cast<size_t>(n) + static_cast<size_t>(o)] =
          UsesQuantizedActivations(type) ? ReferenceOutput(type, decoded, act, r)
                                         : ReferenceFloatOutput(values, x);
    }
  }
  return y;
}

class LinearOfType : public testing::TestWithParam<DType> {};

TEST_P(LinearOfType, EveryLevelGivesTheBitsOfTheDefinition) {
  const DType type = GetParam();
  const int32_t block = TraitsOf(type).block_elements;
  for (const int32_t k : {32, 64, 256, 576, 1536, 2080}) {
    if (k % block != 0) continue;
    for (const auto& [n, m] : {std::pair{8, 1}, {16, 5}, {40, 33}}) {
      const std::vector<std::byte> file = RandomBlocks(type, n, k, BlockKind::kRandom, 1);
      const PackedWeights w(type, n, k, file);
      const Activations act(m, k, Acts::kNormal);
      const std::vector<uint32_t> wanted = BitsOf(Reference(type, file, n, act.view));
      for (const IsaLevel isa : LevelsHere()) {
        EXPECT_EQ(BitsOf(Product(isa, w.matrix, act.view)), wanted)
            << IsaName(isa) << ' ' << n << 'x' << k << " M " << m;
      }
    }
  }
}

TEST_P(LinearOfType, HardWeightsAndActivationsGiveTheBitsOfTheDefinition) {
  const DType type = GetParam();
  const int32_t n = 32, k = 512, m = 19;
  for (const BlockKind kind : {BlockKind::kExtremeScales, BlockKind::kLargestCodes,
                               BlockKind::kSmallestCodes, BlockKind::kRandom}) {
    const std::vector<std::byte> file = RandomBlocks(type, n, k, kind, 2);
    const PackedWeights w(type, n, k, file);
    for (const Acts acts : {Acts::kAllPlus127, Acts::kAllMinus127, Acts::kAlternating, Acts::kZero,
                            Acts::kOneOutlier}) {
      const Activations act(m, k, acts);
      const std::vector<uint32_t> wanted = BitsOf(Reference(type, file, n, act.view));
      for (const IsaLevel isa : LevelsHere()) {
        EXPECT_EQ(BitsOf(Product(isa, w.matrix, act.view)), wanted)
            << IsaName(isa) << " weights " << static_cast<int>(kind) << " activations "
            << static_cast<int>(acts);
      }
    }
  }
}

TEST_P(LinearOfType, RowsDoNotDependOnTheirNumber) {
  const DType type = GetParam();
  const int32_t n = 48, k = type == DType::kQ4_K || type == DType::kQ5_K || type == DType::kQ6_K
                                ? 1024
                                : 1056;
  const PackedWeights w(type, n, k, RandomBlocks(type, n, k, BlockKind::kRandom, 3));
  const Activations act(260, k, Acts::kNormal);
  for (const IsaLevel isa : LevelsHere()) {
    if (isa == IsaLevel::kScalar) continue;  // one row at a time by construction
    const std::vector<uint32_t> all = BitsOf(Product(isa, w.matrix, act.view));
    for (const int32_t m :
         {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 66, 127}) {
      const int32_t first = 260 - m;
      const std::vector<uint32_t> some = BitsOf(Product(isa, w.matrix, act.view.Slice(first, m)));
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + first * n))
          << IsaName(isa) << " M " << m;
    }
  }
}

TEST_P(LinearOfType, LevelsAgreeOnModelShapes) {
  const DType type = GetParam();
  const std::vector<IsaLevel> levels = LevelsHere();
  if (levels.size() < 3)
    GTEST_SKIP() << "needs avx2 and avx512; this machine has " << IsaName(DetectedIsa());
  const int32_t block = TraitsOf(type).block_elements;
  for (const auto& [n, k] : {std::pair{960, 576}, {576, 1536}, {192, 2080}, {192, 256}}) {
    if (k % block != 0) continue;
    const PackedWeights w(type, n, k, RandomBlocks(type, n, k, BlockKind::kRandom, 4));
    for (const int32_t m : {1, 4, 32, 127}) {
      const Activations act(m, k, Acts::kNormal);
      EXPECT_EQ(BitsOf(Product(IsaLevel::kAvx512, w.matrix, act.view)),
                BitsOf(Product(IsaLevel::kAvx2, w.matrix, act.view)))
          << n << 'x' << k << " M " << m;
    }
  }
}

TEST_P(LinearOfType, WritesOnlyTheAskedPanelsAndNoPadding) {
  const DType type = GetParam();
  const int32_t n = 72, k = 256, m = 70;  // four panels and a half
  const PackedWeights w(type, n, k, RandomBlocks(type, n, k, BlockKind::kRandom, 5));
  const Activations act(m, k, Acts::kNormal);
  const float untouched = [] {
    float f;
    std::memset(&f, 0xab, sizeof f);
    return f;
  }();
  for (const IsaLevel isa : LevelsHere()) {
    const std::vector<float> all = Product(isa, w.matrix, act.view);
    for (const PanelRange panels : {PanelRange{0, 0}, {1, 3}, {4, 5}, {3, 5}}) {
      const std::vector<float> part = Product(isa, w.matrix, act.view, panels);
      for (int32_t i = 0; i < n * m; ++i) {
        const int32_t panel = i % n / kPanelRows;
        const bool asked = panel >= panels.begin && panel < panels.end;
        ASSERT_EQ(part[static_cast<size_t>(i)], asked ? all[static_cast<size_t>(i)] : untouched)
            << IsaName(isa) << i;
      }
    }
  }
}

TEST_P(LinearOfType, HintOfWhatIsReadNextChangesNoBit) {
  const DType type = GetParam();
  const int32_t n = 48, k = 512;
  const PackedWeights w(type, n, k, RandomBlocks(type, n, k, BlockKind::kRandom, 10));
  const PackedWeights other(type, 16, k, RandomBlocks(type, 16, k, BlockKind::kRandom, 11));
  const Activations act(33, k, Acts::kNormal);
  const int32_t panels = w.matrix.panels();
  for (const IsaLevel isa : LevelsHere()) {
    for (const int32_t m : {1, 33}) {
      const ActRows rows = act.view.Slice(0, m);
      EXPECT_EQ(BitsOf(Product(isa, w.matrix, rows, {0, panels, other.matrix.panel(0)})),
                BitsOf(Product(isa, w.matrix, rows)))
          << IsaName(isa) << " M " << m;
    }
  }
}

// Relative RMS error against f64 products of the dequantised weights with the f32 activations. What
// remains for quantised types is the rounding of activations to 8 bits: 127 steps to the largest of
// 32 normal values.
TEST_P(LinearOfType, StaysNearTheExactProduct) {
  const DType type = GetParam();
  const int32_t n = 64, k = 1536, m = 8;
  const std::vector<std::byte> file = RandomBlocks(type, n, k, BlockKind::kRandom, 6);
  const PackedWeights w(type, n, k, file);
  const Activations act(m, k, Acts::kNormal);
  const std::vector<float> y = Product(ActiveIsa(), w.matrix, act.view);
  std::vector<float> values(static_cast<size_t>(k));
  double error = 0, norm = 0;
  for (int32_t o = 0; o < n; ++o) {
    DequantizeBlocks(type, file.data() + RowBytes(type, k) * static_cast<size_t>(o), k,
                     values.data());
    for (int32_t r = 0; r < m; ++r) {
      double exact = 0;
      for (int32_t i = 0; i < k; ++i)
        exact += double{values[static_cast<size_t>(i)]} * double{act.view.f32[r * k + i]};
      error += std::pow(exact - double{y[static_cast<size_t>(r * n + o)]}, 2);
      norm += exact * exact;
    }
  }
  EXPECT_LE(std::sqrt(error / norm), UsesQuantizedActivations(type) ? 1e-2 : 1e-6);
  EXPECT_GT(norm, 0);
}

TEST_P(LinearOfType, NanInOneRowStaysInThatRow) {
  const DType type = GetParam();
  const int32_t n = 32, k = 256, m = 9;
  const PackedWeights w(type, n, k, RandomBlocks(type, n, k, BlockKind::kRandom, 7));
  Activations clean(m, k, Acts::kNormal), poisoned(m, k, Acts::kNormal);
  const_cast<float*>(poisoned.view.f32)[4 * k + 100] = std::numeric_limits<float>::quiet_NaN();
  if (UsesQuantizedActivations(type)) QuantizeRows(poisoned.view, 0, m);
  for (const IsaLevel isa : LevelsHere()) {
    const std::vector<float> a = Product(isa, w.matrix, clean.view),
                             b = Product(isa, w.matrix, poisoned.view);
    for (int32_t i = 0; i < n * m; ++i) {
      const float v = b[static_cast<size_t>(i)];
      if (i / n == 4) {
        EXPECT_TRUE(std::isnan(v)) << i;
      } else {
        EXPECT_EQ(v, a[static_cast<size_t>(i)]) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LinearOfType, testing::ValuesIn(AllTypes()),
                         [](const auto& info) { return std::string(TraitsOf(info.param).name); });

TEST(Linear, UsesTheActiveLevel) {
  const int32_t n = 32, k = 64, m = 3;
  const PackedWeights w(DType::kQ4_1, n, k,
                        RandomBlocks(DType::kQ4_1, n, k, BlockKind::kRandom, 8));
  const Activations act(m, k, Acts::kNormal);
  std::vector<float> y(static_cast<size_t>(n * m));
  const GuardedBuffer scratch(LinearScratchBytes());
  Linear(w.matrix, {0, w.matrix.panels()}, act.view, {y.data(), n}, scratch.bytes());
  EXPECT_EQ(BitsOf(y), BitsOf(Product(ActiveIsa(), w.matrix, act.view)));
}

TEST(Linear, LevelsNotRunHereAreNamed) {
  if (DetectedIsa() < IsaLevel::kAvx2)
    GTEST_SKIP() << "NOT RUN: avx2 and avx512 kernels, this processor has neither";
  if (DetectedIsa() < IsaLevel::kAvx512)
    GTEST_SKIP() << "NOT RUN: avx512 kernels, this processor has no VNNI";
  EXPECT_EQ(LevelsHere().size(), 3u);
}

}  // namespace
}  // namespace quire
