#include "scheduler/simulate/cost_fit.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/mix.h"

namespace quire {
namespace {

BatchShape RandomShape(TestRandom& random) {
  BatchShape s;
  const int32_t decodes = random.Between(0, 64);
  const int32_t prompt = decodes == 0 || random.Chance(50) ? random.Between(2, 128) : 0;
  s.rows = decodes + prompt;
  s.sequences = decodes + (prompt > 0);
  s.draws = decodes + (prompt > 0 && random.Chance(50) ? 1 : 0);
  s.decode_kv = int64_t{decodes} * random.Between(1, 2000);
  s.decode_kv_read = s.decode_kv / random.Between(1, 4);
  if (prompt > 0) {
    s.prefill_kv = prompt + random.Between(0, 4000);
    s.prefill_pairs = s.prefill_kv * prompt - int64_t{prompt} * (prompt - 1) / 2;
  }
  return s;
}

CostModel Planted() {
  CostModel model;
  model.seconds = {2e-3, 1e-3, 4e-4, 2e-4, 1.5e-4, 3e-5, 5e-4, 2e-4, 4e-8, 9e-8, 1e-7, 3e-9};
  return model;
}

TEST(FitCost, RecoversPlantedCoefficients) {
  TestRandom random(7);
  std::vector<CostPoint> points;
  for (int i = 0; i < 400; ++i) {
    const BatchShape shape = RandomShape(random);
    points.push_back({.shape = shape, .seconds = Planted().Seconds(shape)});
  }
  const absl::StatusOr<CostFit> fit = FitCost(points);
  ASSERT_TRUE(fit.ok()) << fit.status();
  for (size_t i = 0; i < kCostTermNames.size(); ++i) {
    EXPECT_NEAR(fit->model.seconds[i] / Planted().seconds[i], 1, 0.01) << kCostTermNames[i];
  }
  EXPECT_LT(fit->max_error, 1e-3);
}

TEST(FitCost, AveragesNoiseOut) {
  TestRandom random(8);
  std::vector<CostPoint> points;
  for (int i = 0; i < 2000; ++i) {
    const BatchShape shape = RandomShape(random);
    const double noise = 0.8 + 0.4 * random.Unit();
    points.push_back({.shape = shape, .seconds = Planted().Seconds(shape) * noise});
  }
  const absl::StatusOr<CostFit> fit = FitCost(points);
  ASSERT_TRUE(fit.ok()) << fit.status();
  for (int i = 0; i < 100; ++i) {
    const BatchShape shape = RandomShape(random);
    EXPECT_NEAR(fit->model.Seconds(shape) / Planted().Seconds(shape), 1, 0.06);
  }
  EXPECT_GT(fit->p90_error, fit->p50_error);
  EXPECT_NEAR(fit->p50_error, 0.1, 0.02) << "half of uniform noise of 0.2 is below 0.1";
}

TEST(FitCost, GivesNoTermANegativeCost) {
  // Time falls with rows: the best line would have a negative slope.
  std::vector<CostPoint> points;
  for (int32_t rows = 1; rows <= 64; ++rows) {
    points.push_back({.shape = {.rows = rows, .sequences = 1}, .seconds = 1e-2 - rows * 1e-4});
  }
  const absl::StatusOr<CostFit> fit = FitCost(points);
  ASSERT_TRUE(fit.ok()) << fit.status();
  for (const double c : fit->model.seconds) EXPECT_GE(c, 0);
  EXPECT_NEAR(fit->model.Seconds(points[0].shape), fit->model.Seconds(points[63].shape), 1e-6);
}

TEST(FitCost, RefusesNothingAndNonsense) {
  EXPECT_FALSE(FitCost({}).ok());
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    const CostPoint point{.shape = {.rows = 1, .sequences = 1, .draws = 1}, .seconds = bad};
    EXPECT_FALSE(FitCost({&point, 1}).ok()) << bad;
  }
}

}  // namespace
}  // namespace quire
