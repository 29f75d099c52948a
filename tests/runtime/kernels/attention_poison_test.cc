// What must not matter (stale memory, block ids) and what must surface (non-finite values in
// visible tokens).
#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tests/runtime/kernels/attention_world.h"

namespace quire {
namespace {

constexpr AttentionShape kShape = {
    .num_heads = 6, .num_kv_heads = 2, .head_dim = 64, .scale = 0.125f};
const std::vector<WorldSeq> kSeqs = {{.id = 1, .kv_len = 70, .rows = 1},
                                     {.id = 2, .kv_len = 321, .rows = 30},
                                     {.id = 3, .kv_len = 5, .rows = 5}};

bool AllNaN(const float* values, int32_t count) {
  return std::all_of(values, values + count, [](float v) { return std::isnan(v); });
}
bool AllFinite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

TEST(Attention, PermutedBlocksGiveTheSameBits) {
  for (const AttentionMode& mode : AttentionModes()) {
    SCOPED_TRACE(mode.name);
    const std::vector<float> expected =
        AttentionWorld({.shape = kShape, .dtype = mode.dtype, .arithmetic = mode.arithmetic}, kSeqs)
            .Run();
    for (uint32_t shuffle : {1u, 2u, 3u}) {
      EXPECT_TRUE(SameBits(AttentionWorld({.shape = kShape,
                                           .dtype = mode.dtype,
                                           .arithmetic = mode.arithmetic,
                                           .shuffle = shuffle},
                                          kSeqs)
                               .Run(),
                           expected));
    }
  }
}

TEST(Attention, StaleNaNInKeyTailsAndFreeBlocksVanishes) {
  for (const AttentionMode& mode : AttentionModes()) {
    SCOPED_TRACE(mode.name);
    for (AttentionProducts products : {AttentionProducts::kFastest, AttentionProducts::kUkernel,
                                       AttentionProducts::kSequential}) {
      const AttentionWorld clean(
          {.shape = kShape, .dtype = mode.dtype, .arithmetic = mode.arithmetic}, kSeqs);
      const AttentionWorld poisoned(
          {.shape = kShape, .dtype = mode.dtype, .arithmetic = mode.arithmetic, .fill = kNaN},
          kSeqs);
      AttentionOptions options = clean.KernelOptions();
      options.products = products;
      const std::vector<float> expected = clean.Run(options);
      ASSERT_TRUE(AllFinite(expected));
      EXPECT_TRUE(SameBits(poisoned.Run(options), expected));
    }
  }
}

TEST(Attention, NaNLeftInScratchVanishes) {
  for (int32_t workers : {1, 2}) {
    const AttentionWorld clean({.shape = kShape}, kSeqs);
    const AttentionWorld dirty({.shape = kShape,
                                .edit =
                                    [](int32_t, int32_t, float* q, float* k, float* v) {
                                      std::fill_n(q, 6 * 64, kNaN);
                                      std::fill_n(k, 2 * 64, kNaN);
                                      std::fill_n(v, 2 * 64, kNaN);
                                    }},
                               kSeqs);
    AttentionOptions options = clean.KernelOptions();
    options.workers = workers;
    absl::StatusOr<std::unique_ptr<AttentionKernel>> kernel = AttentionKernel::Create(options);
    ASSERT_TRUE(kernel.ok());
    (*kernel)->Plan(dirty.batch());
    const std::vector<float> nans = dirty.RunWith(**kernel, workers);
    EXPECT_TRUE(AllNaN(nans.data(), static_cast<int32_t>(nans.size())));
    (*kernel)->Plan(clean.batch());
    EXPECT_TRUE(SameBits(clean.RunWith(**kernel, workers), clean.Run()));
  }
}

// A NaN key of head 0 at one position: the rows before it, the other KV head and the other
// sequences keep their bits; every row that sees it is NaN.
TEST(Attention, NaNInAVisibleKeyStaysInTheRowsThatSeeIt) {
  for (int32_t bad : {0, 295, 310, 320}) {
    const AttentionWorld clean({.shape = kShape}, kSeqs);
    const AttentionWorld world({.shape = kShape,
                                .edit =
                                    [bad](int32_t id, int32_t position, float*, float* k, float*) {
                                      if (id == 2 && position == bad) k[3] = kNaN;
                                    }},
                               kSeqs);
    const std::vector<float> expected = clean.Run(), out = world.Run();
    EXPECT_TRUE(SameBits(world.RowsOf(out, 0), clean.RowsOf(expected, 0)));
    EXPECT_TRUE(SameBits(world.RowsOf(out, 2), clean.RowsOf(expected, 2)));
    const std::vector<float> rows = world.RowsOf(out, 1), clean_rows = clean.RowsOf(expected, 1);
    for (int32_t row = 0; row < 30; ++row) {
      const float* got = rows.data() + row * world.width();
      const float* want = clean_rows.data() + row * world.width();
      if (321 - 30 + row >= bad) {
        EXPECT_TRUE(AllNaN(got, 3 * 64)) << "row " << row << " bad " << bad;
      } else {
        EXPECT_EQ(std::memcmp(got, want, 3 * 64 * sizeof(float)), 0)
            << "row " << row << " bad " << bad;
      }
      EXPECT_EQ(std::memcmp(got + 3 * 64, want + 3 * 64, 3 * 64 * sizeof(float)), 0)
          << "row " << row;
    }
  }
}

TEST(Attention, NaNInAQueryStaysInItsHead) {
  const AttentionWorld clean({.shape = kShape}, kSeqs);
  const AttentionWorld world({.shape = kShape,
                              .edit =
                                  [](int32_t id, int32_t position, float* q, float*, float*) {
                                    if (id == 2 && position == 300) q[64] = kNaN;  // head 1
                                  }},
                             kSeqs);
  std::vector<float> expected = clean.Run();
  const int64_t start = int64_t{1 + (300 - 291)} * world.width() + 64;
  std::fill_n(expected.begin() + start, 64, kNaN);
  EXPECT_TRUE(SameBits(world.Run(), expected));
}

TEST(Attention, HugeScoresAndEqualScoresStayExact) {
  // Scores of +-1e4: the largest takes all the weight.
  const AttentionWorld sharp(
      {.shape = {.num_heads = 1, .num_kv_heads = 1, .head_dim = 32, .scale = 1.0f},
       .dtype = KvDType::kF32,
       .edit =
           [](int32_t, int32_t position, float* q, float* k, float*) {
             std::fill_n(q, 32, 0.0f);
             std::fill_n(k, 32, 0.0f);
             q[0] = 100.0f;
             k[0] = position == 150 ? 100.0f : -100.0f;
           }},
      {{.id = 1, .kv_len = 400, .rows = 1}});
  EXPECT_TRUE(SameBits(sharp.Run(), sharp.Reference()));
  // All scores equal: the mean of V, here all ones.
  const AttentionWorld flat(
      {.shape = {.num_heads = 2, .num_kv_heads = 1, .head_dim = 32, .scale = 1.0f},
       .edit =
           [](int32_t, int32_t, float*, float* k, float* v) {
             std::fill_n(k, 32, 0.0f);
             std::fill_n(v, 32, 1.0f);
           }},
      {{.id = 1, .kv_len = 513, .rows = 200}});
  EXPECT_EQ(flat.Run(), std::vector<float>(200 * 64, 1.0f));
}

// Scores that rise by just less and just more than the lazy-rescale threshold from tile to tile.
TEST(Attention, RisingScoresMatchTheReference) {
  for (float step : {7.9f, 8.1f}) {
    const AttentionWorld world(
        {.shape = {.num_heads = 1, .num_kv_heads = 1, .head_dim = 32, .scale = 1.0f},
         .dtype = KvDType::kF32,
         .edit =
             [step](int32_t, int32_t position, float* q, float* k, float*) {
               std::fill_n(q, 32, 0.0f);
               std::fill_n(k, 32, 0.0f);
               q[0] = 1.0f;
               k[0] = step * 0.6931472f * static_cast<float>(position / 64);
             }},
        {{.id = 1, .kv_len = 640, .rows = 1}});
    const std::vector<float> out = world.Run(), expected = world.Reference();
    for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 2e-5f) << step;
  }
}

TEST(Attention, InfiniteScoresNeverLookFinite) {
  const auto world = [](float key) {
    return AttentionWorld(
        {.shape = {.num_heads = 1, .num_kv_heads = 1, .head_dim = 32, .scale = 1.0f},
         .dtype = KvDType::kF32,
         .edit =
             [key](int32_t, int32_t position, float* q, float* k, float*) {
               std::fill_n(q, 32, 0.5f);
               if (position == 100) k[0] = key;
             }},
        {{.id = 1, .kv_len = 300, .rows = 250}});
  };
  const std::vector<float> up = world(kInf).Run(), down = world(-kInf).Run();
  const AttentionWorld finite = world(-1e30f);
  EXPECT_TRUE(AllNaN(up.data() + 50 * 32, 200 * 32));  // rows that see the +Inf score
  EXPECT_TRUE(
      std::all_of(up.begin(), up.begin() + 50 * 32, [](float v) { return std::isfinite(v); }));
  EXPECT_TRUE(SameBits(down, finite.Run()));  // -Inf: weight 0
}

TEST(Attention, RowWhoseEveryScoreIsMinusInfinityIsZero) {
  const AttentionWorld world(
      {.shape = {.num_heads = 1, .num_kv_heads = 1, .head_dim = 32, .scale = 1.0f},
       .dtype = KvDType::kF32,
       .edit =
           [](int32_t, int32_t, float* q, float* k, float*) {
             std::fill_n(q, 32, 1.0f);
             k[0] = -kInf;
           }},
      {{.id = 1, .kv_len = 300, .rows = 3}});
  EXPECT_EQ(world.Run(), std::vector<float>(3 * 32, 0.0f));
}

}  // namespace
}  // namespace quire
