#include "scheduler/step_pacer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/testing/mix.h"

namespace quire {
namespace {

constexpr int64_t kMs = 1'000'000;

// A machine: 4 ms, 0.5 ms per decode, 0.2 ms per row of a prompt, 1 ms per 8192 cached tokens.
int64_t Cost(const StepShape& step) {
  return 4 * kMs + step.decode_rows * kMs / 2 + step.prefill_rows * kMs / 5 +
         step.kv_tokens * kMs / 8192;
}

StepShape Decodes(int32_t rows, int32_t length = 200) {
  return {.decode_rows = rows, .prefill_rows = 0, .kv_tokens = int64_t{rows} * length};
}

// A step with `decodes`, and a prompt that takes what the budget leaves.
StepShape Mixed(const StepPacer& pacer, const StepShape& decodes, int32_t context) {
  StepShape step = decodes;
  step.prefill_rows = pacer.Budget(decodes, context) - decodes.decode_rows;
  step.kv_tokens += int64_t{step.prefill_rows} * context;
  return step;
}

class StepPacerTest : public testing::Test {
 protected:
  // Prompts of up to a few chunks beside up to 16 decodes, as a server sees them.
  void Warm(const std::function<int64_t(const StepShape&)>& cost) {
    TestRandom random(7);
    for (int i = 0; i < 200; ++i) {
      const StepShape decodes = Decodes(random.Between(0, 16), random.Between(50, 500));
      const StepShape step =
          random.Chance(30) ? Mixed(pacer_, decodes, random.Between(0, 1000)) : decodes;
      pacer_.Observe(step, cost(step));
    }
  }
  StepPacer pacer_{{.step_tokens = 256, .target_itl_ns = 30 * kMs}};
};

TEST_F(StepPacerTest, WithoutATargetTheBudgetIsFixed) {
  StepPacer fixed({.step_tokens = 256, .target_itl_ns = 0});
  EXPECT_EQ(fixed.Budget(Decodes(8), 0), 256);
}

TEST_F(StepPacerTest, PromptsTakeWholeStepsWhenNobodyDecodes) {
  EXPECT_EQ(pacer_.Budget({}, 0), 256);
  Warm(Cost);
  EXPECT_EQ(pacer_.Budget({}, 1000), 256);
}

TEST_F(StepPacerTest, BeginsWithTheSmallestChunk) {
  EXPECT_EQ(pacer_.Budget(Decodes(8), 0), 8 + StepPacer::kMinPrefillRows);
}

TEST_F(StepPacerTest, ChunksFillTheTargetAndNoMore) {
  Warm(Cost);
  for (const int32_t rows : {1, 4, 8, 16}) {
    for (const int32_t context : {0, 300, 2000}) {
      const StepShape step = Mixed(pacer_, Decodes(rows), context);
      EXPECT_LE(Cost(step), 30 * kMs) << rows << " decodes, context " << context;
      EXPECT_GE(Cost(step), 24 * kMs) << rows << " decodes, context " << context;
    }
  }
}

TEST_F(StepPacerTest, ALongerContextMakesChunksSmaller) {
  Warm(Cost);
  EXPECT_LT(pacer_.Budget(Decodes(8), 8000), pacer_.Budget(Decodes(8), 0));
}

TEST_F(StepPacerTest, ATargetBelowTheDecodesStillLetsPromptsEnd) {
  Warm([](const StepShape& step) { return 20 * Cost(step); });
  EXPECT_EQ(pacer_.Budget(Decodes(8), 0), 8 + StepPacer::kMinPrefillRows);
}

TEST_F(StepPacerTest, NeverExceedsTheStepTokens) {
  Warm([](const StepShape& step) { return Cost(step) / 100; });
  EXPECT_EQ(pacer_.Budget(Decodes(8), 0), 256);
  StepPacer narrow({.step_tokens = 10, .target_itl_ns = 30 * kMs});
  EXPECT_EQ(narrow.Budget(Decodes(8), 0), 10);
}

TEST_F(StepPacerTest, FollowsAMachineThatBecomesSlower) {
  Warm(Cost);
  const auto slower = [](const StepShape& step) { return 2 * Cost(step); };
  for (int i = 0; i < 300; ++i) {
    const StepShape step = Mixed(pacer_, Decodes(8 + i % 3), 100);
    pacer_.Observe(step, slower(step));
  }
  EXPECT_LE(slower(Mixed(pacer_, Decodes(8), 100)), 31 * kMs);
}

TEST_F(StepPacerTest, AnInterruptedStepChangesLittle) {
  Warm(Cost);
  const int32_t before = pacer_.Budget(Decodes(8), 0);
  pacer_.Observe(Decodes(8), 2000 * kMs);
  EXPECT_GT(pacer_.Budget(Decodes(8), 0), before / 2);
}

TEST_F(StepPacerTest, ALongTimeOfDecodesForgetsNothingAboutPrompts) {
  Warm(Cost);
  for (int i = 0; i < 20'000; ++i)
    pacer_.Observe(Decodes(8, 200 + i % 50), Cost(Decodes(8, 200 + i % 50)));
  const StepShape step = Mixed(pacer_, Decodes(8), 300);
  EXPECT_LE(Cost(step), 30 * kMs);
  EXPECT_GE(Cost(step), 20 * kMs);
}

TEST_F(StepPacerTest, ALongTimeOfDecodesDoesNotMakeItDeaf) {
  Warm(Cost);
  const auto decode = [&](int i, int64_t factor) {
    const StepShape step = Decodes(8, 200 + i % 50);
    pacer_.Observe(step, factor * Cost(step));
  };
  for (int i = 0; i < 20'000; ++i) decode(i, 1);
  for (int i = 0; i < 100; ++i) decode(i, 2);
  EXPECT_NEAR(pacer_.PredictNanos(Decodes(8)), static_cast<double>(2 * Cost(Decodes(8))), kMs);
}

TEST_F(StepPacerTest, MeasuresRates) {
  EXPECT_EQ(pacer_.rates().prefill_tokens_per_second, 0);
  for (int i = 0; i < 100; ++i) {
    pacer_.Observe({.decode_rows = 0, .prefill_rows = 100, .kv_tokens = 0}, 50 * kMs);
    pacer_.Observe(Decodes(4), 10 * kMs);
    if (i % 2 == 0) pacer_.ObserveEnd();
  }
  EXPECT_NEAR(pacer_.rates().prefill_tokens_per_second, 2000, 1);
  EXPECT_NEAR(pacer_.rates().steps_per_second, 100, 1);
  EXPECT_NEAR(pacer_.rates().ends_per_second, 0.5 / 0.06, 0.2);
}

}  // namespace
}  // namespace quire
