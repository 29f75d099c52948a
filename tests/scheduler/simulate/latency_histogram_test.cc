#include "scheduler/simulate/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/mix.h"

namespace quire {
namespace {

TEST(LatencyHistogram, QuantilesAreWithinHalfAPercent) {
  TestRandom random(3);
  LatencyHistogram histogram;
  std::vector<double> exact;
  for (int i = 0; i < 20'000; ++i) {
    const auto nanos = static_cast<int64_t>(std::exp(random.Unit() * 16) * 2000);
    histogram.Observe(nanos);
    exact.push_back(static_cast<double>(nanos) * 1e-9);
  }
  std::ranges::sort(exact);
  for (const double q : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const double want = exact[static_cast<size_t>(std::ceil(q * 20'000)) - 1];
    EXPECT_NEAR(histogram.Quantile(q) / want, 1, 0.005) << q;
    EXPECT_NEAR(histogram.PartUpTo(want * 1.003), q, 0.01) << q;
  }
  EXPECT_DOUBLE_EQ(histogram.Max(), exact.back());
  EXPECT_LE(histogram.Quantile(1), exact.back());
}

TEST(LatencyHistogram, AddsUp) {
  LatencyHistogram a, b, both;
  for (int64_t i = 1; i <= 100; ++i) {
    (i % 3 == 0 ? a : b).Observe(i * 1'000'000);
    both.Observe(i * 1'000'000);
  }
  a.Add(b);
  EXPECT_EQ(a.count(), 100);
  EXPECT_DOUBLE_EQ(a.Quantile(0.5), both.Quantile(0.5));
  EXPECT_NEAR(a.Mean(), 0.0505, 1e-12);
  EXPECT_DOUBLE_EQ(a.Max(), 0.1);
}

TEST(LatencyHistogram, IsZeroWithoutObservations) {
  const LatencyHistogram empty;
  EXPECT_EQ(empty.Quantile(0.5), 0);
  EXPECT_EQ(empty.Mean(), 0);
  EXPECT_EQ(empty.PartUpTo(1), 0);
}

TEST(LatencyHistogram, TakesZeroAndVeryLongTimes) {
  LatencyHistogram histogram;
  histogram.Observe(0);
  histogram.Observe(int64_t{1'000'000} * 1'000'000'000);
  EXPECT_LE(histogram.Quantile(0.5), 1e-6);
  EXPECT_NEAR(histogram.Quantile(1), 1e6, 1e4);
}

}  // namespace
}  // namespace quire
