#include "scheduler/simulate/timeline.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

MonotonicTime At(int64_t ns) { return MonotonicTime{ns}; }

TEST(Timeline, AveragesOverBins) {
  Timeline timeline(4, 100);
  timeline.Add(At(0), At(50), {.waiting = 2, .busy = 1});
  timeline.Add(At(50), At(250), {.waiting = 4});
  const std::vector<LoadSample> bins = timeline.Averages();
  ASSERT_EQ(bins.size(), 3u);
  EXPECT_NEAR(bins[0].waiting, 3, 1e-9);
  EXPECT_NEAR(bins[0].busy, 0.5, 1e-9);
  EXPECT_NEAR(bins[1].waiting, 4, 1e-9);
  EXPECT_NEAR(bins[2].waiting, 2, 1e-9) << "half of the bin is empty";
  EXPECT_NEAR(timeline.MeanUntil(250e-9).waiting, (2 * 50 + 4 * 200) / 250.0, 1e-9);
}

TEST(Timeline, WidensItsBinsAndLosesNothing) {
  Timeline timeline(4, 100);
  for (int64_t t = 0; t < 10'000; t += 10) {
    timeline.Add(At(t), At(t + 10), {.running = static_cast<double>(t / 10 % 7)});
  }
  EXPECT_LE(timeline.Averages().size(), 4u);
  double area = 0;
  for (const LoadSample& bin : timeline.Averages()) area += bin.running * timeline.bin_seconds();
  double want = 0;
  for (int64_t i = 0; i < 1000; ++i) want += static_cast<double>(i % 7) * 10e-9;
  EXPECT_NEAR(area, want, want * 1e-9);
}

TEST(Timeline, AddsLoadsOfSeveralReplicas) {
  Timeline timeline(4, 100);
  timeline.Add(At(0), At(100), {.blocks_used = 5, .busy = 1});
  timeline.Add(At(0), At(100), {.blocks_used = 6, .busy = 1});
  EXPECT_NEAR(timeline.Averages()[0].blocks_used, 11, 1e-9);
  EXPECT_NEAR(timeline.Averages()[0].busy, 2, 1e-9);
}

}  // namespace
}  // namespace quire
