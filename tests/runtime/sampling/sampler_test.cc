#include "runtime/sampling/sampler.h"

#include <gtest/gtest.h>

#include "runtime/base/worker_pool.h"
#include "tests/runtime/sampling/sampling_case.h"
#include "tests/testing/count_allocations.h"

namespace quire {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<SamplingParams> Kinds() {
  return {SamplingParams{.temperature = 0},
          SamplingParams{.temperature = 0, .logprobs = true, .top_logprobs = 20},
          SamplingParams{.seed = 1},
          SamplingParams{.temperature = 0.8f, .top_k = 40, .seed = 2},
          SamplingParams{.top_k = 500, .top_p = 0.9f, .seed = 3},
          SamplingParams{.temperature = 2.0f, .top_p = 0.95f, .seed = 4, .logprobs = true},
          SamplingParams{.min_p = 0.05f, .seed = 5}};
}

TEST(Sampler, GreedyTakesTheLowestOfEqualIds) {
  for (const size_t first : {0, 255, 256, 999}) {
    SamplingCase c(1000);
    std::vector<float> row(1000, 1.5f);
    for (size_t i = first; i < row.size(); ++i) row[i] = 2.5f;
    c.AddRow(row);
    for (const float temperature : {0.0f, 0.00009f}) {
      const SamplingParams params{.temperature = temperature};
      EXPECT_EQ(c.Draw(MakeSpec(params)).token, TokenId{static_cast<int32_t>(first)});
    }
  }
}

TEST(Sampler, ReportsANonFiniteRowAndNoOther) {
  for (const float bad : {kNan, -kMinusInf}) {
    for (const size_t place : {0, 300, 599}) {
      SamplingCase c(600);
      std::vector<float> row = RandomRow(1, 600);
      c.AddRow(row);
      row[place] = bad;
      c.AddRow(row);
      for (const SamplingParams& params : Kinds()) {
        EXPECT_EQ(c.Draw(MakeSpec(params, 0)).outcome, SampleOutcome::kToken);
        const Sampled failed = c.Draw(MakeSpec(params, 1));
        EXPECT_EQ(failed.outcome, SampleOutcome::kNonFinite);
        EXPECT_EQ(failed.token, TokenId::kNone);
      }
    }
  }
}

TEST(Sampler, ReportsARowOfMinusInfinityAsNonFinite) {
  SamplingCase c(300);
  c.AddRow(std::vector<float>(300, kMinusInf));
  for (const SamplingParams& params : Kinds()) {
    EXPECT_EQ(c.Draw(MakeSpec(params)).outcome, SampleOutcome::kNonFinite);
  }
}

TEST(Sampler, ReportsWhenNoTokenIsAllowed) {
  SamplingCase c(300);
  c.AddRow(RandomRow(1, 300));
  const std::vector<uint32_t> none(10);
  std::vector<TokenId> all;
  for (int32_t i = 0; i < 300; ++i) all.push_back(TokenId{i});
  for (const SamplingParams& params : Kinds()) {
    SampleSpec masked = MakeSpec(params), banned = MakeSpec(params);
    masked.allowed = none;
    banned.banned = all;
    EXPECT_EQ(c.Draw(masked).outcome, SampleOutcome::kNoAllowedToken);
    EXPECT_EQ(c.Draw(banned).outcome, SampleOutcome::kNoAllowedToken);
  }
}

TEST(Sampler, DrawsOnlyAllowedAndNotBannedTokens) {
  SamplingCase c(600);
  c.AddRow(RandomRow(3, 600, 1.0f));
  std::vector<uint32_t> allowed(19);
  for (const uint32_t id : {7u, 290u, 291u, 599u}) allowed[id / 32] |= 1u << (id % 32);
  const std::vector<TokenId> banned = {TokenId{290}, TokenId{1}};
  for (const SamplingParams& params : Kinds()) {
    for (int32_t position = 0; position < 50; ++position) {
      SampleSpec spec = MakeSpec(params, 0, position);
      spec.allowed = allowed;
      spec.banned = banned;
      const auto token = static_cast<int32_t>(c.Draw(spec).token);
      EXPECT_TRUE(token == 7 || token == 291 || token == 599) << token;
    }
  }
}

TEST(Sampler, AMaskOfEverythingChangesNoBit) {
  SamplingCase c(600);
  c.AddRow(RandomRow(3, 600));
  const std::vector<uint32_t> everything(19, 0xffffffff);
  for (const SamplingParams& params : Kinds()) {
    SampleSpec spec = MakeSpec(params);
    const Sampled plain = c.Draw(spec);
    spec.allowed = everything;
    const Sampled masked = c.Draw(spec);
    EXPECT_EQ(plain.token, masked.token);
    EXPECT_EQ(plain.logprob, masked.logprob);
  }
}

TEST(Sampler, NeutralValuesAreExactlyNoOperation) {
  SamplingCase c(3000);
  c.AddRow(RandomRow(8, 3000));
  const SamplingParams plain{.seed = 6};
  const SamplingParams neutral{.temperature = 1, .top_k = 3000, .top_p = 1, .min_p = 0, .seed = 6};
  for (int32_t position = 0; position < 500; ++position) {
    EXPECT_EQ(c.Draw(MakeSpec(plain, 0, position)).token,
              c.Draw(MakeSpec(neutral, 0, position)).token);
  }
}

TEST(Sampler, OutputsOfARequestDrawFromOneRowWithTheirOwnStreams) {
  SamplingCase c(3000);
  c.AddRow(RandomRow(8, 3000, 1.0f));
  const SamplingParams params{.seed = 6};
  SampleSpec first = MakeSpec(params), second = MakeSpec(params);
  second.sequence.output_index = 1;
  EXPECT_NE(c.Draw(first).token, c.Draw(second).token);
  second.sequence = first.sequence;
  EXPECT_EQ(c.Draw(first).token, c.Draw(second).token);
}

TEST(Sampler, ExtremeLogitsAreDrawnSafely) {
  SamplingCase c(512);
  std::vector<float> row(512, -3e38f);
  row[100] = 3e38f;
  row[400] = 1e-40f;
  c.AddRow(row);
  for (const SamplingParams& params : Kinds())
    EXPECT_EQ(c.Draw(MakeSpec(params)).token, TokenId{100});
}

// Rows and specs in one call, alone, and spread over workers: same bits.
TEST(Sampler, AResultDependsOnNoNeighbourAndNoWorkerCount) {
  constexpr int32_t kVocab = 4000;
  SamplingCase c(kVocab);
  const std::vector<SamplingParams> kinds = Kinds();
  std::vector<SampleSpec> specs;
  for (int32_t i = 0; i < 21; ++i) {
    c.AddRow(RandomRow(static_cast<uint64_t>(i), kVocab));
    specs.push_back(MakeSpec(kinds[static_cast<size_t>(i) % kinds.size()], i, i));
  }
  for (const int32_t threads : {0, 1, 3}) {
    WorkerPool pool({.threads = std::max(threads, 1), .pin = false});
    Sampler sampler({.vocab_size = kVocab, .pool = threads == 0 ? nullptr : &pool});
    std::vector<Sampled> out(specs.size());
    sampler.Sample(c.view(), specs, out);
    for (size_t i = 0; i < specs.size(); ++i) {
      const Sampled alone = c.Draw(specs[i]);
      EXPECT_EQ(out[i].token, alone.token);
      EXPECT_EQ(out[i].logprob, alone.logprob);
      EXPECT_EQ(out[i].rank, alone.rank);
      ASSERT_EQ(out[i].top_count, alone.top_count);
      for (size_t k = 0; k < static_cast<size_t>(alone.top_count); ++k) {
        EXPECT_EQ(out[i].top[k].token, alone.top[k].token);
        EXPECT_EQ(out[i].top[k].logprob, alone.top[k].logprob);
      }
    }
  }
}

TEST(Sampler, AllocatesNothing) {
  constexpr int32_t kVocab = 4000;
  SamplingCase c(kVocab);
  c.AddRow(RandomRow(1, kVocab, 0.01f));
  const std::vector<uint32_t> everything(125, 0xffffffff);
  std::vector<SamplingParams> kinds = Kinds();
  Sampler sampler({.vocab_size = kVocab});
  for (const SamplingParams& params : kinds) {
    SampleSpec spec = MakeSpec(params);
    spec.allowed = everything;
    Sampled out{};
    const LogitsView view = c.view();
    const AllocationCounter allocations;
    sampler.Sample(view, {&spec, 1}, {&out, 1});
    EXPECT_EQ(allocations.ours(), 0);
    EXPECT_EQ(out.outcome, SampleOutcome::kToken);
  }
}

}  // namespace
}  // namespace quire
