// The runner against the reference in double precision. Int8 activations cost up to 5e-3 of each
// product (more in a model as narrow as these than in a real one), so the logits agree by
// direction; with float weights and f32 KV they agree closely.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/runtime/model/runner_fixture.h"

namespace quire {
namespace {

double Cosine(std::span<const float> a, std::span<const double> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += double{a[i]} * a[i];
    bb += b[i] * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

struct Case {
  std::string name;
  TinyModelOptions model;
  KvDType kv = KvDType::kBF16;
  double min_cosine = 0.997;
};

class TransformerReference : public testing::TestWithParam<Case> {};

TEST_P(TransformerReference, LogitsAgree) {
  const TinyModel model = MakeTinyModel(GetParam().model);
  const std::vector<TokenId> tokens = RandomTokens(model.config, 90, 5);
  const auto expected = ReferenceLogits(model, tokens);
  TestRunner runner(model, 2, GetParam().kv);
  TestSequence sequence(tokens, 3);
  const auto actual = runner.RunAlone(sequence, 37);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_GT(Cosine(actual[i], expected[i]), GetParam().min_cosine) << "position " << i;
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {.name = "GqaTiedQ4_1", .model = {}},
      {.name = "MhaUntiedQ8_0",
       .model = {.heads = 2, .kv_heads = 2, .linear = DType::kQ8_0, .tied = false}},
      {.name = "MqaQ4_0", .model = {.heads = 4, .kv_heads = 1, .linear = DType::kQ4_0}},
      {.name = "ThreeQueriesPerHead",
       .model = {.hidden = 96, .heads = 3, .kv_heads = 1, .ffn = 160}},
      {.name = "HeadsWiderThanHidden",
       .model = {.hidden = 64, .heads = 4, .kv_heads = 2, .head_dim = 64}},
      {.name = "HalfSplitRope", .model = {.rope_kind = RopeKind::kHalfSplit}},
      {.name = "RopeFactors", .model = {.rope_factors = true}},
      {.name = "Q5_0", .model = {.linear = DType::kQ5_0}},
      {.name = "Q5_1", .model = {.linear = DType::kQ5_1}},
      {.name = "Q4_K", .model = {.hidden = 256, .heads = 8, .ffn = 256, .linear = DType::kQ4_K}},
      {.name = "Q5_K", .model = {.hidden = 256, .heads = 8, .ffn = 256, .linear = DType::kQ5_K}},
      {.name = "Q6_K", .model = {.hidden = 256, .heads = 8, .ffn = 256, .linear = DType::kQ6_K}},
      {.name = "Bf16WeightsF16Embedding",
       .model = {.linear = DType::kBF16, .embedding = DType::kF16},
       .min_cosine = 0.9999},
      {.name = "Int8Kv", .model = {}, .kv = KvDType::kInt8},
      {.name = "Int16Kv", .model = {}, .kv = KvDType::kInt16},
      {.name = "F32WeightsF32Kv",
       .model = {.hidden = 48,
                 .heads = 3,
                 .kv_heads = 3,
                 .ffn = 56,
                 .linear = DType::kF32,
                 .embedding = DType::kF32},
       .kv = KvDType::kF32,
       .min_cosine = 0.999999},
  };
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, TransformerReference, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace quire
