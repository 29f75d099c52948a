// bf16 products: own tile, ukernels and plain loops give one result, whatever the number of rows.
#include "runtime/kernels/attention_bf16.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "runtime/base/cpu_features.h"
#include "runtime/kernels/attention_ukernels.h"
#include "runtime/kernels/onednn/brgemm.h"
#include "runtime/tensor/half.h"

namespace quire {
namespace {

std::vector<uint16_t> Noise(size_t count, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> values(count);
  for (uint16_t& value : values)
    value = FloatToBFloat16(normal(rng) * std::exp(4.0f * normal(rng)));
  return values;
}

class AttentionBf16Test : public testing::Test {
 protected:
  void SetUp() override {
    if (ActiveIsa() < IsaLevel::kAvx512Bf16)
      GTEST_SKIP() << "bf16 products need AVX512_BF16; active: " << IsaName(ActiveIsa());
  }
};

TEST_F(AttentionBf16Test, OwnTileAndUkernelsAgreeForEveryRowCount) {
  for (int32_t k : {16, 64, 80, 128}) {
    for (int32_t n : {16, 48, 64}) {
      for (bool add : {false, true}) {
        const std::vector<uint16_t> a = Noise(48 * k, k), b = Noise(k * n, n);
        const std::vector<float> start(48 * n, 0.75f);
        Bf16Product p = {.a = a.data(),
                         .lda = k,
                         .b = reinterpret_cast<const std::byte*>(b.data()),
                         .ldb = n,
                         .depth = k,
                         .width = n,
                         .c = nullptr,
                         .ldc = n,
                         .rows = 48,
                         .add = add,
                         .prefetch = {}};
        std::vector<float> expected = start;
        p.c = expected.data();
        Bf16ProductAvx512(p);
        std::vector<float> defined = start;
        p.c = defined.data();
        SequentialBf16Product(p);
        // Other makers' processors may round differently inside the instruction.
        if (absl::StrContains(CpuBrand(), "Intel")) {
          EXPECT_EQ(expected, defined) << n << "x" << k;
        }
        for (int32_t m = 1; m <= 48; ++m) {
          std::vector<float> own = start, ukernel = start;
          p.rows = m;
          p.c = own.data();
          Bf16ProductAvx512(p);
          absl::StatusOr<Brgemm> brgemm = Brgemm::Create(
              {.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n, .add_c = add, .bf16 = true});
          ASSERT_TRUE(brgemm.ok()) << brgemm.status();
          alignas(64) static std::byte scratch[65536];
          ASSERT_LE(brgemm->scratch_bytes(), sizeof(scratch));
          brgemm->Run(a.data(), b.data(), ukernel.data(), scratch);
          for (const std::vector<float>* got : {&own, &ukernel}) {
            EXPECT_EQ(std::memcmp(got->data(), expected.data(), sizeof(float) * m * n), 0)
                << m << "x" << n << "x" << k << " add " << add << " own " << (got == &own);
            EXPECT_EQ(std::memcmp(got->data() + m * n, start.data(), sizeof(float) * (48 - m) * n),
                      0)
                << "wrote past row " << m;
          }
        }
      }
    }
  }
}

TEST_F(AttentionBf16Test, StartUpSelfTestAcceptsThisProcessor) {
  for (int32_t dim : {40, 64, 80}) {
    for (int32_t own_rows : {0, 12}) {
      if (own_rows != 0 && dim % 16 != 0) continue;
      AttentionUkernels ukernels;
      ASSERT_TRUE(ukernels
                      .Generate(KvLayout::Make(KvDType::kBF16, 1, dim), QueryTiling::Make(3),
                                own_rows, (dim + 15) / 16 * 16, true)
                      .ok());
      EXPECT_TRUE(ukernels.Bf16RowsAgree(own_rows)) << dim;
    }
  }
}

TEST_F(AttentionBf16Test, RoundsLikeThePool) {
  std::vector<float> values;
  for (uint32_t upper = 0x0080; upper < 0x8000; upper += 3) {
    for (uint32_t lower : {0x0000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
      values.push_back(-values.back());
    }
  }
  const int32_t count = static_cast<int32_t>(values.size());
  std::vector<uint16_t> expected(count), got(count + 1, 0x1234);
  SequentialRoundToBf16(values.data(), count, expected.data());
  RoundToBf16Avx512(values.data(), count, got.data());
  EXPECT_EQ(got.back(), 0x1234);
  got.pop_back();
  EXPECT_EQ(got, expected);
}

TEST(AttentionBf16, DefinitionTakesSubnormalsAsZero) {
  const uint16_t a[2] = {1, 0x3f80}, b[2] = {0x7f00, 0x4000};
  float c = 5.0f;
  SequentialBf16Product({.a = a,
                         .lda = 2,
                         .b = reinterpret_cast<const std::byte*>(b),
                         .ldb = 1,
                         .depth = 2,
                         .width = 1,
                         .c = &c,
                         .ldc = 1,
                         .rows = 1,
                         .add = false,
                         .prefetch = {}});
  EXPECT_EQ(c, 2.0f);
}

}  // namespace
}  // namespace quire
