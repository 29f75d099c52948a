#include "scheduler/simulate/capacity_search.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(LargestPassing, FindsTheEdgeFromEitherSide) {
  for (const double edge : {0.013, 0.9, 1.0, 7.3, 800.0}) {
    int tries = 0;
    const double found = LargestPassing(1, [&](double v) {
      ++tries;
      return v <= edge;
    });
    EXPECT_LE(found, edge);
    EXPECT_GE(found * 1.01, edge);
    EXPECT_LT(tries, 25);
  }
}

TEST(LargestPassing, StopsWhereNothingOrEverythingPasses) {
  EXPECT_EQ(LargestPassing(3, [](double) { return false; }), 0);
  EXPECT_EQ(LargestPassing(3, [](double) { return true; }), 3 * 1024);
}

TEST(LeastPassing, FindsEveryEdge) {
  for (int32_t edge = 1; edge <= 20; ++edge) {
    EXPECT_EQ(LeastPassing(20, [&](int32_t n) { return n >= edge; }), edge);
  }
  EXPECT_EQ(LeastPassing(20, [](int32_t n) { return n > 20; }), std::nullopt);
  EXPECT_EQ(LeastPassing(1, [](int32_t) { return true; }), 1);
}

TEST(AtSpeed, RepeatsAFasterTraceForTheSameTime) {
  Trace trace{.arrivals = {}, .tenants = {"default"}, .prefixes = {}};
  for (int32_t i = 1; i <= 10; ++i) {
    trace.arrivals.push_back({.time_ns = int64_t{i} * 1'000'000'000, .prompt_tokens = i});
  }
  EXPECT_EQ(AtSpeed(trace, 1).arrivals, trace.arrivals);
  const Trace fast = AtSpeed(trace, 2.5);
  ASSERT_EQ(fast.arrivals.size(), 25u);
  EXPECT_EQ(fast.arrivals[0].time_ns, 400'000'000);
  EXPECT_EQ(fast.arrivals[10].time_ns, 4'400'000'000);
  EXPECT_EQ(fast.arrivals[10].prompt_tokens, 1);
  EXPECT_EQ(fast.arrivals[24].time_ns, 10'000'000'000);
  const Trace slow = AtSpeed(trace, 0.5);
  ASSERT_EQ(slow.arrivals.size(), 5u);
  EXPECT_EQ(slow.arrivals[4].time_ns, 10'000'000'000);
  EXPECT_EQ(AtSpeed(trace, 1e-3).arrivals.size(), 1u);
}

TEST(AtSpeed, TakesATraceInWhichAllArriveAtOnce) {
  Trace trace{.arrivals = {{.prompt_tokens = 1}, {.prompt_tokens = 2}},
              .tenants = {"default"},
              .prefixes = {}};
  EXPECT_EQ(AtSpeed(trace, 4).arrivals, trace.arrivals);
}

}  // namespace
}  // namespace quire
