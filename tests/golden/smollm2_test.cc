#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/golden/golden_case.h"

// The default model against transformers on the dequantised weights, on the committed prompts. What
// differs is our int8 activations (one scale per 32 values) and the element type of the KV cache.
namespace quire {
namespace {

// The stated error of int8 activations: the difference between two logits of one row moves by at
// most this. Measured: 0.74 with f32 and 0.78 with bf16 keys and values when every activation is
// rounded once, 0.47 when Q, K and V read what was left over as well; 0.60 with int8 keys and
// values.
constexpr double kInt8Error = 0.8;

double Cosine(std::span<const float> a, std::span<const float> b) {
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    dot += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return dot / std::sqrt(aa * bb);
}

class SmolLM2 : public testing::TestWithParam<KvDType> {
 protected:
  void SetUp() override {
    const char* path = std::getenv("QUIRE_TEST_MODEL");
    if (path == nullptr) GTEST_SKIP() << "QUIRE_TEST_MODEL is not set";
    golden_ = ReadGoldenJson("smollm2.json");
    model_ = std::make_unique<GoldenModel>(path, GetParam(), 2);
    ASSERT_EQ(model_->loaded().sha256, golden_["sha256"].get<std::string>())
        << "another file than the reference's";
  }

  // Our logits where the reference's continuation was drawn: after the prompt and after each new
  // token but the last.
  std::vector<std::vector<float>> ContinuationLogits(const nlohmann::json& c) {
    std::vector<TokenId> tokens = TokensOf(c["ids"]);
    const size_t prompt = tokens.size();
    for (const TokenId id : TokensOf(c["new"])) tokens.push_back(id);
    tokens.pop_back();
    std::vector<std::vector<float>> all = model_->Logits(tokens, 64);
    return {all.begin() + static_cast<ptrdiff_t>(prompt) - 1, all.end()};
  }

  nlohmann::json golden_;
  std::unique_ptr<GoldenModel> model_;
};

// Over all prompts together. A single row may do worse: rounding transformers' own activations to
// int8 once gives it 0.997 to 0.99994 on these prompts, and two such roundings differ from each
// other by as much.
TEST_P(SmolLM2, NextTokenLogitsPointTheSameWay) {
  const std::vector<float> rows = ReadF16Rows("smollm2.f16");
  const auto vocab = golden_["vocab"].get<size_t>();
  std::vector<float> all;
  for (const nlohmann::json& c : golden_["cases"]) {
    const std::vector<float> ours = model_->Logits(TokensOf(c["ids"]), 64).back();
    const double cosine = Cosine(ours, std::span(rows).subspan(all.size(), vocab));
    EXPECT_GT(cosine, 0.99) << c["text"];
    all.insert(all.end(), ours.begin(), ours.end());
    RecordProperty("cosine_at_" + std::to_string(all.size() / vocab), std::to_string(cosine));
  }
  ASSERT_EQ(all.size(), rows.size());
  EXPECT_GT(Cosine(all, rows), 0.999);
  RecordProperty("cosine", std::to_string(Cosine(all, rows)));
}

TEST_P(SmolLM2, GreedyTokensAreTheReferencesBeyondTheInt8Error) {
  size_t decided = 0, all = 0;
  double worst = 0;
  for (const nlohmann::json& c : golden_["cases"]) {
    const std::vector<std::vector<float>> ours = ContinuationLogits(c);
    ASSERT_EQ(ours.size(), c["new"].size());
    for (size_t i = 0; i < ours.size(); ++i, ++all) {
      const auto top = c["top_ids"][i].get<std::vector<size_t>>();
      const auto logits = c["top_logits"][i].get<std::vector<double>>();
      for (size_t k = 1; k < top.size(); ++k) {
        const double moved = (ours[i].at(top[0]) - ours[i].at(top[k])) - (logits[0] - logits[k]);
        worst = std::max(worst, std::abs(moved));
      }
      if (c["margin"][i].get<double>() <= kInt8Error) continue;
      ++decided;
      const auto best = static_cast<size_t>(std::ranges::max_element(ours[i]) - ours[i].begin());
      EXPECT_EQ(best, top[0]) << c["text"] << " position " << i;
    }
  }
  EXPECT_LE(worst, kInt8Error);
  EXPECT_GE(decided * 2, all) << "the reference's margins decide most positions";
  RecordProperty("worst", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(Kv, SmolLM2,
                         testing::Values(KvDType::kF32, KvDType::kBF16, KvDType::kInt8,
                                         KvDType::kInt16),
                         [](const auto& info) { return std::string(KvDTypeName(info.param)); });

}  // namespace
}  // namespace quire
