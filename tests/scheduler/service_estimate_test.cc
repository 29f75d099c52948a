#include "scheduler/service_estimate.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

constexpr ServiceRates kRates{
    .prefill_tokens_per_second = 1000, .steps_per_second = 20, .ends_per_second = 2};

TEST(ServiceEstimate, AnIdleServerComputesThePromptAndThenATokenAStep) {
  const ServiceEstimate estimate = EstimateService({.free_places = 4}, kRates, 500, 21);
  EXPECT_TRUE(estimate.known);
  EXPECT_EQ(estimate.first_token_ns, 500'000'000);
  EXPECT_EQ(estimate.end_ns, 1'500'000'000);
}

TEST(ServiceEstimate, PromptsAheadComeFirst) {
  const ServiceLoad load{.tokens_ahead = 3000, .waiting_ahead = 1, .free_places = 4};
  EXPECT_EQ(EstimateService(load, kRates, 500, 1).first_token_ns, 3'500'000'000);
}

TEST(ServiceEstimate, AFullBatchMakesItWaitForEnds) {
  const ServiceLoad load{.tokens_ahead = 100, .waiting_ahead = 9, .free_places = 0};
  EXPECT_EQ(EstimateService(load, kRates, 500, 1).first_token_ns, 5'500'000'000);
}

TEST(ServiceEstimate, WithoutRatesNothingIsKnown) {
  const ServiceEstimate estimate = EstimateService({.tokens_ahead = 9}, {}, 500, 21);
  EXPECT_FALSE(estimate.known);
  EXPECT_EQ(estimate.first_token_ns, 0);
}

TEST(ServiceEstimate, StaysFiniteHoweverSlowTheServer) {
  const ServiceRates slow{
      .prefill_tokens_per_second = 1e-300, .steps_per_second = 1e-300, .ends_per_second = 1e-300};
  const ServiceEstimate estimate = EstimateService(
      {.tokens_ahead = INT64_MAX, .waiting_ahead = INT32_MAX}, slow, INT64_MAX, INT64_MAX);
  EXPECT_GT(estimate.first_token_ns, 0);
  EXPECT_GE(estimate.end_ns, estimate.first_token_ns);
}

}  // namespace
}  // namespace quire
