// Every mask, bias and sink against the plain-loop reference in double, alone and in pairs.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/runtime/kernels/attention_specs.h"
#include "tests/runtime/kernels/attention_world.h"

namespace quire {
namespace {

// f32 against f64, relative to the largest |v|, which bounds every output: scores of up to 2^6 in
// units of log2 are rounded to 2^-19 a few times, sums of up to 1000 products differ in order.
constexpr float kTolerance = 3e-5f;
// Biases of up to 2^9 round the scores to 2^-15.
constexpr float kBiasTolerance = 1.5e-4f;

void ExpectNearReference(const AttentionWorld& world, const AttentionOptions& options) {
  const bool biased = !options.spec.alibi_slopes.empty() || !options.spec.relative.values.empty();
  const std::vector<float> out = world.Run(options), expected = world.Reference();
  float worst = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const float error = std::abs(out[i] - expected[i]);
    if (!(error <= worst)) worst = error;  // a NaN sticks
  }
  EXPECT_LE(worst, (biased ? kBiasTolerance : kTolerance) * world.max_abs_v());
}

void ExpectNearReference(const AttentionWorld& world) {
  ExpectNearReference(world, world.KernelOptions());
}

// A decode row and two prefills, with facts for whatever the spec asks.
std::vector<WorldSeq> RaggedSeqs(int32_t context) {
  const auto seq = [](int32_t id, int32_t kv_len, int32_t rows) {
    return WorldSeq{.id = id,
                    .kv_len = kv_len,
                    .rows = std::min(rows, kv_len),
                    .prefix = kv_len / 2,
                    .globals = {0, kv_len / 3, kv_len - 1},
                    .cross_len = kv_len % 200 + 1};
  };
  return {seq(1, context, 1), seq(2, context, 50), seq(3, std::max(1, context / 2), 7)};
}

TEST(AttentionVariants, EachMatchesTheReferenceAcrossBlockEdges) {
  constexpr AttentionShape kShape = Shape(6, 2, 32);
  for (const Variant& variant : AllVariants()) {
    for (int32_t context : {1, 63, 64, 65, 255, 256, 257, 600}) {
      SCOPED_TRACE(absl::StrCat(variant.name, " context ", context));
      ExpectNearReference(
          AttentionWorld({.shape = kShape, .spec = Make({variant}, kShape)}, RaggedSeqs(context)));
    }
  }
}

TEST(AttentionVariants, EachMatchesTheReferenceUnderASequencesWindow) {
  constexpr AttentionShape kShape = Shape(6, 2, 32);
  std::vector<Variant> variants = AllVariants();
  variants.push_back(Of("plain", [](LayerAttention&) {}));
  for (const Variant& variant : variants) {
    for (int32_t context : {65, 257, 600}) {
      std::vector<WorldSeq> seqs = RaggedSeqs(context);
      seqs[0].window_tokens = 100;
      seqs[1].window_tokens = 64;
      seqs[1].sink_tokens = 70;
      SCOPED_TRACE(absl::StrCat(variant.name, " context ", context));
      ExpectNearReference(AttentionWorld({.shape = kShape, .spec = Make({variant}, kShape)}, seqs));
    }
  }
}

TEST(AttentionVariants, PairsMatchTheReference) {
  constexpr AttentionShape kShape = Shape(4, 2, 32);
  const std::vector<Variant> variants = AllVariants();
  for (size_t i = 0; i < variants.size(); ++i) {
    for (size_t j = i + 1; j < variants.size(); ++j) {
      SCOPED_TRACE(absl::StrCat(variants[i].name, " and ", variants[j].name));
      ExpectNearReference(AttentionWorld(
          {.shape = kShape, .shuffle = 5, .spec = Make({variants[i], variants[j]}, kShape)},
          RaggedSeqs(333)));
    }
  }
}

TEST(AttentionVariants, AllTogetherMatchTheReferenceForEveryGroupAndHeadSize) {
  for (KvDType dtype : {KvDType::kF32, KvDType::kBF16}) {
    for (int32_t group : {1, 2, 3, 4, 7, 8, 64}) {
      for (int32_t dim : {32, 40, 64, 80, 96, 128, 256}) {
        SCOPED_TRACE(absl::StrCat(KvDTypeName(dtype), " group ", group, " dim ", dim));
        const int32_t kv_heads = group == 64 ? 1 : 2;
        const AttentionShape shape = Shape(kv_heads * group, kv_heads, dim);
        const AttentionSpec spec = Make(
            {Window(70), SinkTokens(5), Globals(), LearnedSinks(), Alibi(), SoftCap(4)}, shape);
        ExpectNearReference(AttentionWorld({.shape = shape, .dtype = dtype, .spec = spec},
                                           {{.id = 1, .kv_len = 290, .rows = 1, .globals = {100}},
                                            {.id = 2, .kv_len = 133, .rows = 17}}));
      }
    }
  }
}

TEST(AttentionVariants, WindowsOfEveryLengthMatchTheReference) {
  constexpr AttentionShape kShape = Shape(3, 1, 32);
  for (int32_t window : {1, 2, 63, 64, 65, 127, 128, 255, 256, 257, 299, 300, 301, 5000}) {
    for (bool all : {false, true}) {
      SCOPED_TRACE(absl::StrCat("window ", window, " all ", all));
      std::vector<Variant> variants = {Window(window)};
      if (all) variants.push_back(Bidirectional());
      ExpectNearReference(AttentionWorld(
          {.shape = kShape, .spec = Make(variants, kShape)},
          {{.id = 1, .kv_len = 300, .rows = 1}, {.id = 2, .kv_len = 300, .rows = 300}}));
    }
  }
}

TEST(AttentionVariants, BiasesInBothDirectionsMatchTheReference) {
  constexpr AttentionShape kShape = Shape(2, 1, 32);
  for (const Variant& bias :
       {Relative(-40, 30), Relative(-500, 5), Relative(-3, 200), Relative(7, 7), Alibi()}) {
    for (int32_t context : {64, 100, 300}) {
      SCOPED_TRACE(absl::StrCat(bias.name, " context ", context));
      ExpectNearReference(AttentionWorld(
          {.shape = kShape, .spec = Make({bias, Bidirectional()}, kShape)},
          {{.id = 1, .kv_len = context, .rows = context}, {.id = 2, .kv_len = 30, .rows = 30}}));
    }
  }
}

TEST(AttentionVariants, EveryOffsetOfTheBoundariesMatchesTheReference) {
  constexpr AttentionShape kShape = Shape(2, 1, 32);
  for (const std::vector<Variant>& variants :
       std::vector<std::vector<Variant>>{{Window(64)},
                                         {Window(64), SinkTokens(3)},
                                         {LocalChunk(80)},
                                         {Prefix()},
                                         {Relative(-40, 30), Bidirectional()}}) {
    std::vector<WorldSeq> seqs;
    for (int32_t offset = 0; offset <= 64; ++offset) {
      seqs.push_back({.id = offset + 1,
                      .kv_len = 224 + offset,
                      .rows = 1 + offset % 3,
                      .prefix = 100 + offset});
    }
    ExpectNearReference(AttentionWorld({.shape = kShape, .spec = Make(variants, kShape)}, seqs));
  }
}

TEST(AttentionVariants, StreamingSinksAtEveryTileOffsetMatchTheReference) {
  constexpr AttentionShape kShape = Shape(2, 1, 32);
  for (int32_t sinks : {1, 4, 63, 64, 65, 130}) {
    ExpectNearReference(
        AttentionWorld({.shape = kShape, .spec = Make({Window(40), SinkTokens(sinks)}, kShape)},
                       {{.id = 1, .kv_len = 700, .rows = 1},
                        {.id = 2, .kv_len = 150, .rows = 150},
                        {.id = 3, .kv_len = 30, .rows = 30}}));
  }
}

TEST(AttentionVariants, EncodersOfEveryLengthMatchTheReference) {
  constexpr AttentionShape kShape = Shape(4, 4, 64);
  std::vector<WorldSeq> seqs;
  int32_t id = 0;
  for (int32_t length : {1, 2, 63, 64, 65, 256, 257, 400}) {
    seqs.push_back({.id = ++id, .kv_len = 20, .rows = id % 2 == 0 ? 1 : 20, .cross_len = length});
  }
  for (uint32_t shuffle : {0u, 3u}) {
    ExpectNearReference(AttentionWorld(
        {.shape = kShape, .fill = kNaN, .shuffle = shuffle, .spec = Make({Cross()}, kShape)},
        seqs));
  }
}

TEST(AttentionVariants, RowsThatSeeNothingAreZero) {
  constexpr AttentionShape kShape = Shape(4, 2, 32);
  for (bool sinks : {false, true}) {
    std::vector<Variant> variants = {Cross()};
    if (sinks) variants.push_back(LearnedSinks());
    for (int32_t workers : {1, 2}) {
      const AttentionWorld world({.shape = kShape, .fill = kNaN, .spec = Make(variants, kShape)},
                                 {{.id = 1, .kv_len = 300, .rows = 20}});
      AttentionOptions options = world.KernelOptions();
      options.workers = workers;
      EXPECT_EQ(world.Run(options), std::vector<float>(20 * world.width(), 0.0f));
    }
  }
}

TEST(AttentionVariants, RefusesSpecsOfAWrongSize) {
  const auto code = [](const std::function<void(AttentionSpec&)>& edit) {
    AttentionOptions options;
    options.shape = Shape(4, 2, 32);
    options.num_layers = 2;
    edit(options.spec);
    return AttentionKernel::Create(options).status().code();
  };
  EXPECT_EQ(code([](AttentionSpec&) {}), absl::StatusCode::kOk);
  for (const std::function<void(AttentionSpec&)>& edit :
       std::vector<std::function<void(AttentionSpec&)>>{
           [](AttentionSpec& spec) { spec.layers.resize(1); },
           [](AttentionSpec& spec) { spec.sinks.resize(4); },
           [](AttentionSpec& spec) { spec.alibi_slopes.resize(2); },
           [](AttentionSpec& spec) { spec.logit_cap = -1; },
           [](AttentionSpec& spec) { spec.logit_cap = kNaN; },
           [](AttentionSpec& spec) { spec.relative.values.resize(3); },
           [](AttentionSpec& spec) {
             spec.layers.resize(2);
             spec.layers[1].window = -1;
           }}) {
    EXPECT_EQ(code(edit), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace quire
