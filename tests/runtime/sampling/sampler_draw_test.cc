// The drawn token against a definition that sorts everything in f64.
#include <gtest/gtest.h>

#include <map>

#include "runtime/sampling/counter_rng.h"
#include "tests/runtime/sampling/sampling_case.h"

namespace quire {
namespace {

struct FilterCase {
  float temperature;
  int32_t top_k;
  float top_p, min_p;
};

std::vector<FilterCase> AllFilterCases() {
  std::vector<FilterCase> cases;
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    for (const int32_t top_k : {0, 1, 2, 40, 700, 5000}) {
      for (const float top_p : {1.0f, 0.95f, 0.3f, 1e-6f}) {
        for (const float min_p : {0.0f, 0.05f, 1.0f})
          cases.push_back({temperature, top_k, top_p, min_p});
      }
    }
  }
  return cases;
}

void ExpectReferenceDraw(SamplingCase& c, int32_t row, const SamplingParams& params,
                         int32_t position, int32_t* skipped) {
  double slack = 0;
  const std::vector<ReferenceToken> kept = ReferenceKept(c.row(row), params, &slack);
  const double u = UniformAt(params.seed, 0, position);
  double sum = 0, distance = 1;
  int32_t expected = -1;
  for (const ReferenceToken& token : kept) {
    sum += token.mass;
    distance = std::min(distance, std::abs(sum - u));
    if (expected < 0 && sum > u) expected = token.id;
  }
  // Where f32 rounding may decide which side of a border the draw falls on, there is nothing to
  // compare.
  if (slack < 1e-6 || distance < 2e-6) {
    ++*skipped;
    return;
  }
  const Sampled drawn = c.Draw(MakeSpec(params, row, position));
  EXPECT_EQ(drawn.outcome, SampleOutcome::kToken);
  EXPECT_EQ(drawn.token, TokenId{expected}) << "t " << params.temperature << " k " << params.top_k
                                            << " p " << params.top_p << " min_p " << params.min_p;
}

TEST(Sampler, DrawsWhatSortingEverythingDraws) {
  int32_t compared = 0, skipped = 0;
  for (const int32_t vocab : {1000, 5000}) {
    SamplingCase c(vocab);
    for (const float spread : {0.05f, 4.0f, 20.0f}) {
      const int32_t row = c.AddRow(RandomRow(static_cast<uint64_t>(spread * 100), vocab, spread));
      for (const FilterCase& filter : AllFilterCases()) {
        for (int32_t position = 1; position <= 3; ++position, ++compared) {
          const SamplingParams params{.temperature = filter.temperature,
                                      .top_k = filter.top_k,
                                      .top_p = filter.top_p,
                                      .min_p = filter.min_p,
                                      .seed = 11};
          ExpectReferenceDraw(c, row, params, position, &skipped);
        }
      }
    }
  }
  EXPECT_LT(skipped, compared / 10);
}

TEST(Sampler, KeepsTiesOfLowerIdsOnly) {
  SamplingCase c(600);
  std::vector<float> row(600, -1.0f);
  for (const size_t id : {5, 300, 301, 599}) row[id] = 2.0f;
  c.AddRow(row);
  std::map<TokenId, int32_t> seen;
  const SamplingParams params{.top_k = 2, .seed = 4};
  for (int32_t position = 0; position < 200; ++position)
    ++seen[c.Draw(MakeSpec(params, 0, position)).token];
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_GT(seen[TokenId{5}], 60);
  EXPECT_GT(seen[TokenId{300}], 60);
}

// Chi-square of the draws against the exact distribution of the kept set.
double ChiSquare(const SamplingParams& params, int32_t draws, size_t* bins) {
  SamplingCase c(512);
  c.AddRow(RandomRow(77, 512, 2.0f));
  double slack = 0;
  const std::vector<ReferenceToken> kept = ReferenceKept(c.row(0), params, &slack);
  std::map<int32_t, int32_t> counts;
  for (int32_t position = 0; position < draws; ++position) {
    ++counts[static_cast<int32_t>(c.Draw(MakeSpec(params, 0, position)).token)];
  }
  double chi = 0, rest_expected = 0, rest_seen = 0;
  *bins = 0;
  for (const ReferenceToken& token : kept) {
    const double expected = token.mass * draws;
    const double seen = counts[token.id];
    counts.erase(token.id);
    if (expected < 8) {
      rest_expected += expected;
      rest_seen += seen;
      continue;
    }
    chi += (seen - expected) * (seen - expected) / expected;
    ++*bins;
  }
  if (rest_expected > 8) {
    chi += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
    ++*bins;
  }
  EXPECT_TRUE(counts.empty()) << "drew a token outside the kept set";
  return chi;
}

TEST(Sampler, DrawsTokensAsOftenAsTheirProbability) {
  for (const SamplingParams& params :
       {SamplingParams{.seed = 1}, SamplingParams{.temperature = 0.7f, .top_k = 40, .seed = 2},
        SamplingParams{.top_p = 0.9f, .seed = 3},
        SamplingParams{.temperature = 1.5f, .min_p = 0.1f, .seed = 4}}) {
    size_t bins = 0;
    const double chi = ChiSquare(params, 20000, &bins);
    const double freedom = static_cast<double>(bins) - 1;
    ASSERT_GE(freedom, 10);
    EXPECT_LT(chi, freedom + 3.7 * std::sqrt(2 * freedom));  // about p = 0.0005
    EXPECT_GT(chi, freedom - 3.7 * std::sqrt(2 * freedom));
  }
}

TEST(Sampler, NeverDrawsATokenAtMinusInfinity) {
  SamplingCase c(300);
  std::vector<float> row = RandomRow(5, 300, 1.0f);
  for (size_t i = 0; i < row.size(); i += 2) row[i] = kMinusInf;
  c.AddRow(row);
  for (const SamplingParams& params :
       {SamplingParams{.temperature = 2.0f, .seed = 1},
        SamplingParams{.temperature = 2.0f, .top_k = 299, .seed = 1},
        SamplingParams{.temperature = 2.0f, .top_p = 0.9999f, .seed = 1}}) {
    for (int32_t position = 0; position < 3000; ++position) {
      EXPECT_EQ(static_cast<int32_t>(c.Draw(MakeSpec(params, 0, position)).token) % 2, 1);
    }
  }
}

}  // namespace
}  // namespace quire
