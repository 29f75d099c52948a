#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/log/check.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/quality_reference.h"

// What int8 activations and the KV element type cost on committed text, beside llama.cpp on the
// same windows (quality/README.md). The table goes to the test's output.
namespace quire {
namespace {

struct KvCase {
  KvDType dtype;
  // How much the perplexity may grow over that of bf16; 0 = compared with the model's instead.
  double perplexity_over_bf16 = 0;
};

void PrintTo(const KvCase& c, std::ostream* out) { *out << KvDTypeName(c.dtype); }

const QualityReference& Reference() {
  static const QualityReference reference(QUIRE_GOLDEN_DATA "/../quality");
  return reference;
}

QualitySum MeasureAndPrint(KvDType dtype) {
  GoldenModel model(std::getenv("QUIRE_TEST_MODEL"), dtype, 2);
  CHECK_EQ(model.loaded().sha256, Reference().sha256()) << "another file than the reference's";
  QualitySum all;
  std::vector<QualitySum> sums;
  for (const QualityWindow& window : Reference().windows()) {
    std::vector<TokenId> tokens;
    for (const int32_t id : window.ids) tokens.push_back(TokenId{id});
    tokens.pop_back();
    const std::vector<std::vector<float>> rows = model.Logits(tokens, 64);
    QualitySum& sum = sums.emplace_back();
    for (size_t i = 0; i < rows.size(); ++i) Reference().AddRow(window, i, rows[i], sum);
    all.Add(sum);
  }
  std::printf("%s keys and values\n%s", KvDTypeName(dtype),
              QualityTable(Reference(), sums).c_str());
  return all;
}

// Of four tokens the reference keeps 1 and 2 (p = 1/2, 1/4); against equal chances that is
// 1/2 ln 2 + 1/4 ln 1 + 1/4 ln 1/2.
TEST(QualityReference, DivergenceIsThatOfTheKeptTokensAndTheRest) {
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "/reference.json")
      << R"({"sha256": "", "keep": 2, "units": 2048,)"
      << R"( "windows": [{"name": "one", "perplexity": 2, "ids": [0, 1]}]})";
  const std::array<uint16_t, 5> row = {1, 2, 1420, 2839, 2839};
  std::ofstream(folder + "/reference.u16", std::ios::binary)
      .write(reinterpret_cast<const char*>(row.data()), sizeof(row));
  const QualityReference reference(folder);
  QualitySum equal, same;
  reference.AddRow(reference.windows()[0], 0, std::array<float, 4>{1, 1, 1, 1}, equal);
  EXPECT_NEAR(equal.MeanKl(), 0.25 * std::log(2.0), 1e-3);
  EXPECT_NEAR(equal.Perplexity(), 4, 1e-6);
  const auto log = [](double p) { return static_cast<float>(std::log(p)); };
  const std::array<float, 4> own = {log(0.125), log(0.5), log(0.25), log(0.125)};
  reference.AddRow(reference.windows()[0], 0, own, same);
  EXPECT_NEAR(same.MeanKl(), 0, 1e-7);
  EXPECT_NEAR(same.Perplexity(), 2, 1e-6);
}

class Quality : public testing::TestWithParam<KvCase> {
 protected:
  void SetUp() override {
    if (std::getenv("QUIRE_TEST_MODEL") == nullptr) GTEST_SKIP() << "QUIRE_TEST_MODEL is not set";
  }
};

// How much int8 activations may add to the perplexity of the model in float32.
constexpr double kPerplexityOverReference = 0.005;

TEST_P(Quality, StaysAsCloseToTheModelAsLlamaCppDoes) {
  const nlohmann::json llama = ReadGoldenJson("../quality/llama.json");
  ASSERT_EQ(llama["model_sha256"].get<std::string>(), Reference().sha256());
  const QualitySum ours = MeasureAndPrint(GetParam().dtype);
  EXPECT_LE(ours.MeanKl(), llama["kl"].get<double>());
  RecordProperty("kl", std::to_string(ours.MeanKl()));
  RecordProperty("perplexity", std::to_string(ours.Perplexity()));
  if (GetParam().perplexity_over_bf16 == 0) {
    EXPECT_LE(ours.Perplexity(), Reference().Perplexity() * (1 + kPerplexityOverReference));
    return;
  }
  // The text's perplexity moves by 0.2% either way among equally good roundings: 3064 tokens are a
  // small sample. Its expectation under the model, of which the divergence is the log, does not.
  const QualitySum bf16 = MeasureAndPrint(KvDType::kBF16);
  const double allowed = std::log1p(GetParam().perplexity_over_bf16);
  EXPECT_LE(std::log(ours.Perplexity()), std::log(bf16.Perplexity()) + allowed);
  EXPECT_LE(ours.MeanKl(), bf16.MeanKl() + allowed);
}

// A narrower KV type is one more line here.
INSTANTIATE_TEST_SUITE_P(Kv, Quality,
                         testing::Values(KvCase{KvDType::kF32}, KvCase{KvDType::kBF16},
                                         KvCase{KvDType::kInt16, 0.003},
                                         KvCase{KvDType::kInt8, 0.003}),
                         [](const auto& info) { return KvDTypeName(info.param.dtype); });

}  // namespace
}  // namespace quire
