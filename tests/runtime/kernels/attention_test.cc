// The fused kernel against the plain-loop reference, and its equalities: batch, chunk, split,
// workers, code path.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/runtime/kernels/attention_world.h"

namespace quire {
namespace {

AttentionShape Shape(int32_t heads, int32_t kv_heads, int32_t dim) {
  return {.num_heads = heads,
          .num_kv_heads = kv_heads,
          .head_dim = dim,
          .scale = 1.0f / std::sqrt(static_cast<float>(dim))};
}

void ExpectNearReference(const AttentionWorld& world, const std::vector<float>& out,
                         float tolerance) {
  const std::vector<float> expected = world.Reference();
  float worst = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const float error = std::abs(out[i] - expected[i]);
    if (!(error <= worst)) worst = error;  // a NaN sticks
  }
  EXPECT_LE(worst, tolerance * world.max_abs_v());
}

std::vector<IsaLevel> IsasHere() {
  std::vector<IsaLevel> isas = {IsaLevel::kScalar};
  if (ActiveIsa() >= IsaLevel::kAvx2) isas.push_back(IsaLevel::kAvx2);
  if (ActiveIsa() >= IsaLevel::kAvx512) isas.push_back(IsaLevel::kAvx512);
  if (ActiveIsa() >= IsaLevel::kAvx512Bf16) isas.push_back(IsaLevel::kAvx512Bf16);
  return isas;
}

TEST(Attention, MatchesReferenceForEveryGroupAndHeadSize) {
  for (const AttentionMode& mode : AttentionModes()) {
    for (int32_t group : {1, 2, 3, 4, 7, 8, 50}) {
      for (int32_t dim : {32, 40, 64, 80, 96, 128, 256}) {
        SCOPED_TRACE(absl::StrCat(mode.name, " group ", group, " dim ", dim));
        const AttentionWorld world(
            {.shape = Shape(2 * group, 2, dim), .dtype = mode.dtype, .arithmetic = mode.arithmetic},
            {{.id = 1, .kv_len = 70, .rows = 1}, {.id = 2, .kv_len = 133, .rows = 17}});
        ExpectNearReference(world, world.Run(), mode.tolerance);
      }
    }
  }
}

TEST(Attention, PagedMatchesReferenceAcrossBlockEdges) {
  for (const AttentionMode& mode : AttentionModes()) {
    for (int32_t context : {1, 63, 64, 65, 255, 256, 257, 1000}) {
      for (int32_t rows : {1, 2, 15, 16, 17, 64, 128}) {
        if (rows > context) continue;
        SCOPED_TRACE(absl::StrCat(mode.name, " context ", context, " rows ", rows));
        const AttentionWorld world(
            {.shape = Shape(3, 1, 64), .dtype = mode.dtype, .arithmetic = mode.arithmetic},
            {{.id = 7, .kv_len = context, .rows = rows}});
        ExpectNearReference(world, world.Run(), mode.tolerance);
      }
    }
  }
}

TEST(Attention, EveryCodePathGivesTheSameBits) {
  for (const AttentionMode& mode : AttentionModes()) {
    for (const AttentionShape& shape :
         {Shape(9, 3, 64), Shape(4, 4, 80), Shape(8, 1, 128), Shape(2, 1, 40)}) {
      const AttentionWorld world(
          {.shape = shape, .dtype = mode.dtype, .arithmetic = mode.arithmetic},
          {{.id = 1, .kv_len = 300, .rows = 1},
           {.id = 2, .kv_len = 70, .rows = 3},
           {.id = 3, .kv_len = 290, .rows = 40}});
      AttentionOptions options = world.KernelOptions();
      options.products = AttentionProducts::kSequential;
      const std::vector<float> expected = world.Run(options);
      for (IsaLevel isa : IsasHere()) {
        for (AttentionProducts products :
             {AttentionProducts::kFastest, AttentionProducts::kUkernel}) {
          SCOPED_TRACE(absl::StrCat(mode.name, " dim ", shape.head_dim, " ",
                                    std::string(IsaName(isa)), " products ",
                                    static_cast<int>(products)));
          options.isa = isa;
          options.products = products;
          EXPECT_TRUE(SameBits(world.Run(options), expected));
        }
      }
    }
  }
}

TEST(Attention, ChunksGiveTheSameBitsAsOneShot) {
  for (const AttentionMode& mode : AttentionModes()) {
    SCOPED_TRACE(mode.name);
    const WorldOptions options = {
        .shape = Shape(9, 3, 64), .dtype = mode.dtype, .arithmetic = mode.arithmetic};
    constexpr int32_t kTokens = 530;
    const AttentionWorld whole(options, {{.id = 5, .kv_len = kTokens, .rows = kTokens}});
    const std::vector<float> expected = whole.Run();
    for (int32_t chunk : {1, 17, 64, 100}) {
      std::vector<float> got;
      for (int32_t begin = 0; begin < kTokens; begin += chunk) {
        const int32_t end = std::min(begin + chunk, kTokens);
        if (chunk == 1 && begin % 29 != 0 && begin != 255 &&
            begin != 256) {  // a sample of decode steps
          got.insert(got.end(), expected.begin() + begin * whole.width(),
                     expected.begin() + end * whole.width());
          continue;
        }
        const std::vector<float> part =
            AttentionWorld(options, {{.id = 5, .kv_len = end, .rows = end - begin}}).Run();
        got.insert(got.end(), part.begin(), part.end());
      }
      EXPECT_TRUE(SameBits(got, expected)) << "chunk " << chunk;
    }
  }
}

TEST(Attention, RowsDoNotDependOnBatchMates) {
  for (const AttentionMode& mode : AttentionModes()) {
    SCOPED_TRACE(mode.name);
    const WorldOptions options = {
        .shape = Shape(9, 3, 64), .dtype = mode.dtype, .arithmetic = mode.arithmetic};
    const std::vector<WorldSeq> seqs = {{.id = 1, .kv_len = 1, .rows = 1},
                                        {.id = 2, .kv_len = 257, .rows = 1},
                                        {.id = 3, .kv_len = 700, .rows = 1},
                                        {.id = 4, .kv_len = 90, .rows = 90},
                                        {.id = 5, .kv_len = 65, .rows = 7}};
    const AttentionWorld together(options, seqs);
    const std::vector<float> out = together.Run();
    for (int32_t i = 0; i < static_cast<int32_t>(seqs.size()); ++i) {
      EXPECT_TRUE(SameBits(together.RowsOf(out, i), AttentionWorld(options, {seqs[i]}).Run()))
          << "sequence " << i;
    }
  }
}

TEST(Attention, WorkersAndSplitsDoNotChangeBits) {
  for (const AttentionMode& mode : AttentionModes()) {
    SCOPED_TRACE(mode.name);
    for (int32_t rows : {1, 5, 40}) {
      const AttentionWorld world(
          {.shape = Shape(9, 3, 64), .dtype = mode.dtype, .arithmetic = mode.arithmetic},
          {{.id = 1, .kv_len = 1200, .rows = rows}, {.id = 2, .kv_len = 40, .rows = 1}});
      AttentionOptions options = world.KernelOptions();
      options.split_long_items = false;
      const std::vector<float> expected = world.Run(options);
      for (int32_t workers : {1, 2, 3, 8}) {
        for (bool split : {false, true}) {
          options.workers = workers;
          options.split_long_items = split;
          EXPECT_TRUE(SameBits(world.Run(options), expected))
              << workers << " workers, split " << split << ", rows " << rows;
        }
      }
    }
  }
}

TEST(Attention, Bf16ProductsNeedABf16CacheAndTheLevel) {
  const AttentionWorld world({.shape = Shape(3, 1, 64)}, {{.id = 1, .kv_len = 3, .rows = 1}});
  AttentionOptions options = world.KernelOptions();
  const auto uses_bf16 = [&] {
    return AttentionKernel::Create(options).value()->uses_bf16_products();
  };
  EXPECT_FALSE(uses_bf16());
  options.arithmetic = AttentionArithmetic::kBF16;
  EXPECT_TRUE(uses_bf16());
  options.kv_dtype = KvDType::kF32;
  EXPECT_FALSE(uses_bf16());
  options.kv_dtype = KvDType::kBF16;
  options.arithmetic = AttentionArithmetic::kBest;
  EXPECT_EQ(uses_bf16(), HasFastBf16Dot());
  options.isa = std::min(ActiveIsa(), IsaLevel::kAvx512);
  EXPECT_FALSE(uses_bf16());
}

TEST(Attention, OneKernelServesManyLayersAndSteps) {
  const WorldOptions options = {.shape = Shape(6, 2, 64)};
  const AttentionWorld a(options, {{.id = 1, .kv_len = 900, .rows = 1}}),
      b(options, {{.id = 2, .kv_len = 77, .rows = 20}});
  const std::vector<float> expected_a = a.Run(), expected_b = b.Run();
  AttentionOptions kernel_options = a.KernelOptions();
  kernel_options.num_layers = 3;
  kernel_options.workers = 2;
  kernel_options.max_rows = 20;
  absl::StatusOr<std::unique_ptr<AttentionKernel>> kernel = AttentionKernel::Create(kernel_options);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  for (int32_t step = 0; step < 3; ++step) {
    for (const AttentionWorld* world : {&a, &b}) {
      (*kernel)->Plan(world->batch());
      for (int32_t layer = 0; layer < 3; ++layer) {
        EXPECT_TRUE(
            SameBits(world->RunWith(**kernel, 2, layer), world == &a ? expected_a : expected_b));
      }
    }
  }
}

TEST(Attention, CountsTheWorkOfAStep) {
  const AttentionWorld world({.shape = Shape(6, 2, 64)}, {{.id = 1, .kv_len = 65, .rows = 1},
                                                          {.id = 2, .kv_len = 3, .rows = 3}});
  absl::StatusOr<std::unique_ptr<AttentionKernel>> kernel =
      AttentionKernel::Create(world.KernelOptions());
  ASSERT_TRUE(kernel.ok());
  (*kernel)->Plan(world.batch());
  EXPECT_EQ((*kernel)->planned_macs(), 2 * (65 + 1 + 2 + 3) * 6 * 64);
  EXPECT_EQ((*kernel)->planned_kv_bytes(), 3 * 64 * 2 * 64 * 2 * 2);
  EXPECT_GT((*kernel)->scratch_bytes(), 0);
}

TEST(Attention, RefusesShapesItCannotServe) {
  AttentionOptions options;
  for (const AttentionShape& shape : {Shape(9, 2, 64), Shape(0, 1, 64), Shape(1, 0, 64),
                                      Shape(1, 1, 63), Shape(1, 1, 258), Shape(1, 1, 0)}) {
    options.shape = shape;
    EXPECT_EQ(AttentionKernel::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace quire
