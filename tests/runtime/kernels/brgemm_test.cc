// The ukernel's arithmetic on the active instruction set: what carries "one arithmetic for prefill
// and decode".
#include "runtime/kernels/onednn/brgemm.h"

#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/cpu_features.h"
#include "runtime/kernels/attention_tiles.h"
#include "runtime/kernels/attention_ukernels.h"

namespace quire {
namespace {

std::vector<float> Noise(size_t count, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(rng);
  return values;
}

class BrgemmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (ActiveIsa() < IsaLevel::kAvx2)
      GTEST_SKIP() << "oneDNN has no brgemm below AVX2; active: " << IsaName(ActiveIsa());
  }

  static void Run(const Brgemm& brgemm, const float* a, const float* b, float* c) {
    std::vector<float> scratch(brgemm.scratch_bytes() / sizeof(float) + 32);
    std::byte* aligned =
        reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
    brgemm.Run(a, b, c, aligned);
  }
};

TEST_F(BrgemmTest, EveryElementIsSequentialFmaWhateverTheRowCount) {
  for (int32_t k : {32, 40, 64, 128, 256}) {
    for (int32_t n : {16, 40, 64}) {
      const std::vector<float> a = Noise(48 * k, k), b = Noise(k * n, n), start = Noise(48 * n, 5);
      for (bool add : {false, true}) {
        std::vector<float> expected = start;
        SequentialProduct({.a = a.data(),
                           .lda = k,
                           .b = reinterpret_cast<const std::byte*>(b.data()),
                           .ldb = n,
                           .depth = k,
                           .width = n,
                           .c = expected.data(),
                           .ldc = n,
                           .rows = 48,
                           .add = add,
                           .prefetch = {}});
        for (int32_t m :
             {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 30, 31, 32, 33, 45, 47, 48}) {
          absl::StatusOr<Brgemm> brgemm =
              Brgemm::Create({.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n, .add_c = add});
          ASSERT_TRUE(brgemm.ok()) << brgemm.status();
          std::vector<float> c = start;
          Run(*brgemm, a.data(), b.data(), c.data());
          EXPECT_EQ(std::memcmp(c.data(), expected.data(), sizeof(float) * m * n), 0)
              << m << "x" << n << "x" << k << " add " << add;
          EXPECT_EQ(
              std::memcmp(c.data() + m * n, start.data() + m * n, sizeof(float) * (48 - m) * n), 0)
              << "wrote past row " << m;
        }
      }
    }
  }
}

TEST_F(BrgemmTest, OneObjectServesManyThreads) {
  absl::StatusOr<Brgemm> brgemm =
      Brgemm::Create({.m = 48, .n = 64, .k = 64, .lda = 64, .ldb = 64, .ldc = 64, .add_c = false});
  ASSERT_TRUE(brgemm.ok());
  const std::vector<float> a = Noise(48 * 64, 1), b = Noise(64 * 64, 2);
  std::vector<float> expected(48 * 64);
  Run(*brgemm, a.data(), b.data(), expected.data());
  std::vector<std::vector<float>> results(8);
  std::vector<std::thread> threads;
  for (std::vector<float>& result : results) {
    threads.emplace_back([&] {
      for (int32_t i = 0; i < 50; ++i) {
        result.assign(48 * 64, 0.0f);
        Run(*brgemm, a.data(), b.data(), result.data());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : results) EXPECT_EQ(result, expected);
}

// Masked weights are exactly 0, but 0 * NaN is NaN: this is why opened blocks are zero-filled.
TEST_F(BrgemmTest, ZeroWeightsDoNotHideNaN) {
  absl::StatusOr<Brgemm> brgemm =
      Brgemm::Create({.m = 1, .n = 16, .k = 16, .lda = 16, .ldb = 16, .ldc = 16, .add_c = false});
  ASSERT_TRUE(brgemm.ok());
  const std::vector<float> a(16, 0.0f);
  std::vector<float> b(16 * 16, 1.0f), c(16);
  b[5 * 16 + 3] = std::nanf("");
  Run(*brgemm, a.data(), b.data(), c.data());
  for (int32_t n = 0; n < 16; ++n) EXPECT_EQ(std::isnan(c[n]), n == 3);
}

TEST_F(BrgemmTest, StartUpSelfTestAcceptsThisProcessor) {
  for (int32_t dim : {40, 64, 128}) {
    AttentionUkernels ukernels;
    ASSERT_TRUE(ukernels
                    .Generate(KvLayout::Make(KvDType::kBF16, 1, dim), QueryTiling::Make(3), 12,
                              (dim + 15) / 16 * 16, false)
                    .ok());
    EXPECT_TRUE(ukernels.EqualSequentialFma()) << dim;
    EXPECT_TRUE(ukernels.HasShortTiles(48));
    EXPECT_FALSE(ukernels.HasShortTiles(45));
  }
}

TEST(Brgemm, RefusesAnImpossibleShape) {
  EXPECT_FALSE(
      Brgemm::Create({.m = 0, .n = 16, .k = 16, .lda = 16, .ldb = 16, .ldc = 16, .add_c = false})
          .ok());
  EXPECT_FALSE(
      Brgemm::Create({.m = 4, .n = 16, .k = 16, .lda = 8, .ldb = 16, .ldc = 16, .add_c = false})
          .ok());
}

}  // namespace
}  // namespace quire
