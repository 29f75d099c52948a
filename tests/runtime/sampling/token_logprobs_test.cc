#include "runtime/sampling/token_logprobs.h"

#include <gtest/gtest.h>

#include "tests/runtime/sampling/sampling_case.h"

namespace quire {
namespace {

double ReferenceLogprob(std::span<const float> row, int32_t token) {
  double max = row[0], sum = 0;
  for (const float x : row) max = std::max(max, static_cast<double>(x));
  for (const float x : row) sum += std::exp(static_cast<double>(x) - max);
  return static_cast<double>(row[static_cast<size_t>(token)]) - max - std::log(sum);
}

int32_t ReferenceRank(std::span<const float> row, int32_t token) {
  int32_t rank = 1;
  const float value = row[static_cast<size_t>(token)];
  for (int32_t i = 0; i < static_cast<int32_t>(row.size()); ++i) {
    const float x = row[static_cast<size_t>(i)];
    rank += x > value || (x == value && i < token);
  }
  return rank;
}

TEST(TokenLogprobs, MatchesALogSoftmaxInDouble) {
  for (const float spread : {0.01f, 3.0f, 30.0f}) {
    SamplingCase c(3000);
    c.AddRow(RandomRow(9, 3000, spread));
    for (int32_t position = 0; position < 20; ++position) {
      const SamplingParams params{
          .temperature = 1.7f, .seed = 3, .logprobs = true, .top_logprobs = 20};
      const Sampled drawn = c.Draw(MakeSpec(params, 0, position));
      const auto token = static_cast<int32_t>(drawn.token);
      EXPECT_NEAR(drawn.logprob, ReferenceLogprob(c.row(0), token), 1e-5);
      EXPECT_EQ(drawn.rank, ReferenceRank(c.row(0), token));
      ASSERT_EQ(drawn.top_count, 20);
      for (int32_t i = 0; i < 20; ++i) {
        const TopLogprob& top = drawn.top[static_cast<size_t>(i)];
        EXPECT_EQ(ReferenceRank(c.row(0), static_cast<int32_t>(top.token)), i + 1);
        EXPECT_NEAR(top.logprob, ReferenceLogprob(c.row(0), static_cast<int32_t>(top.token)), 1e-5);
      }
    }
  }
}

TEST(TokenLogprobs, RanksEqualLogitsByTheLowerId) {
  SamplingCase c(700);
  std::vector<float> row(700, 0.0f);
  row[600] = 1.0f;
  c.AddRow(row);
  std::vector<uint32_t> only(22);
  only[299 / 32] = 1u << (299 % 32);
  const SamplingParams params{.temperature = 0, .logprobs = true, .top_logprobs = 3};
  SampleSpec spec = MakeSpec(params);
  spec.allowed = only;
  const Sampled drawn = c.Draw(spec);
  EXPECT_EQ(drawn.token, TokenId{299});
  EXPECT_EQ(drawn.rank, 301);
  EXPECT_EQ(drawn.top[0].token, TokenId{600});
  EXPECT_EQ(drawn.top[1].token, TokenId{0});
  EXPECT_EQ(drawn.top[2].token, TokenId{1});
}

TEST(TokenLogprobs, DoNotDependOnSamplingParameters) {
  SamplingCase c(2000);
  c.AddRow(RandomRow(21, 2000));
  const SamplingParams greedy{.temperature = 0, .logprobs = true, .top_logprobs = 5};
  const Sampled expected = c.Draw(MakeSpec(greedy));
  for (const SamplingParams& other :
       {SamplingParams{.temperature = 2, .top_k = 1, .logprobs = true, .top_logprobs = 5},
        SamplingParams{.temperature = 0.5f, .top_p = 1e-6f, .logprobs = true, .top_logprobs = 5},
        SamplingParams{.min_p = 1, .logprobs = true, .top_logprobs = 5}}) {
    const Sampled drawn = c.Draw(MakeSpec(other));
    EXPECT_EQ(drawn.token, expected.token);
    EXPECT_EQ(drawn.logprob, expected.logprob);
    EXPECT_EQ(drawn.rank, 1);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(drawn.top[i].logprob, expected.top[i].logprob);
  }
}

TEST(TokenLogprobs, AreRawAlsoUnderAMask) {
  SamplingCase c(600);
  c.AddRow(RandomRow(4, 600));
  const SamplingParams params{.temperature = 0, .logprobs = true, .top_logprobs = 1};
  const Sampled free = c.Draw(MakeSpec(params));
  const std::vector<TokenId> banned = {free.token};
  SampleSpec spec = MakeSpec(params);
  spec.banned = banned;
  const Sampled second = c.Draw(spec);
  EXPECT_EQ(second.rank, 2);
  EXPECT_EQ(second.top[0].token, free.token);
  EXPECT_EQ(second.top[0].logprob, free.logprob);
  EXPECT_NEAR(second.logprob, ReferenceLogprob(c.row(0), static_cast<int32_t>(second.token)), 1e-5);
}

TEST(TokenLogprobs, CanonicalLogIsALogarithm) {
  for (double x = 1.0; x < 1e7; x *= 1.0137)
    EXPECT_NEAR(CanonicalLog(x), std::log(x), 4e-15 * (1 + std::log(x)));
  EXPECT_EQ(CanonicalLog(1.0), 0.0);
}

}  // namespace
}  // namespace quire
