// The simulation of every change: a million steps of random traffic and faults in two shards, each
// step compared with a shadow. A failure names its seed and prints a small test of it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/property/sim/run_seeds.h"
#include "tests/property/sim/shrink.h"
#include "tests/property/sim/sim_world.h"

namespace quire::sim {
namespace {

constexpr uint64_t kShards = 2;
constexpr int64_t kSteps = 1'000'000;  // of all shards; QUIRE_SIM_STEPS asks for another number

int64_t StepsPerShard() {
  const char* asked = std::getenv("QUIRE_SIM_STEPS");
  return (asked == nullptr ? kSteps : std::strtoll(asked, nullptr, 10)) / int64_t{kShards};
}

std::string Explain(uint64_t seed, const std::string& problem) {
  const Shrunk shrunk = Shrink(DrawCase(seed), TryCase);
  return "seed " + std::to_string(seed) + ": " + problem + "\nafter " +
         std::to_string(shrunk.trials) + " trials: " + shrunk.problem + "\n\n" +
         ToCode(shrunk.smallest, "Seed" + std::to_string(seed));
}

// Each thing that can go wrong has gone wrong often enough.
void ExpectCoverage(const Coverage& seen) {
  EXPECT_GE(seen.accepted, 10'000);
  EXPECT_GE(seen.too_large, 50);
  EXPECT_GE(seen.refused, 1000);
  EXPECT_GE(seen.whole, 2000);
  EXPECT_GE(seen.preemptions, 1500);
  EXPECT_GE(seen.paused_victims, 200);
  EXPECT_GE(seen.recomputed, 10'000);
  EXPECT_GE(seen.aborts_in_step, 500);
  EXPECT_GE(seen.stalls_in_step, 500);
  EXPECT_GE(seen.failed_draws, 500);
  EXPECT_GE(seen.nan_rows, 20);
  EXPECT_GE(seen.timed_out_waiting, 200);
  EXPECT_GE(seen.timed_out_running, 200);
  EXPECT_GE(seen.queue_aged, 200);
  EXPECT_GE(seen.drains, 50);
  EXPECT_GE(seen.pool_bound, 50);
  EXPECT_GE(seen.hits, 500);
  EXPECT_GE(seen.partial_hits, 300);
  EXPECT_GE(seen.copies, 300);
  EXPECT_GE(seen.merged, 100);
  EXPECT_GE(seen.evicted, 5000);
  EXPECT_GE(seen.bypasses, 500);
  EXPECT_GE(seen.displacements, 300);
}

class Sim : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Shard, Sim, testing::Range<uint64_t>(0, kShards));

TEST_P(Sim, HalfAMillionStepsKeepEveryRule) {
  const int64_t steps = StepsPerShard();
  const auto work = [&](Progress& progress) {
    RunSeeds({.first = 1 + GetParam(), .stride = kShards, .steps = steps}, progress);
  };
  const Progress progress = RunIsolated(work, 3600);
  ASSERT_STREQ(progress.problem, "") << Explain(progress.seed, progress.problem);
  EXPECT_GE(progress.steps, steps);
  std::printf("%lld steps, last seed %llu\n", static_cast<long long>(progress.steps),
              static_cast<unsigned long long>(progress.seed));
  std::printf("%s\n", ToText(CoverageOf(progress)).c_str());
  if (steps >= kSteps / int64_t{kShards}) ExpectCoverage(CoverageOf(progress));
}

// QUIRE_SIM_SEED=N looks at one seed.
TEST(SimSeed, OneSeedKeepsEveryRule) {
  const char* asked = std::getenv("QUIRE_SIM_SEED");
  const uint64_t seed = asked == nullptr ? 1 : std::strtoull(asked, nullptr, 10);
  const std::string problem = TryCase(DrawCase(seed));
  ASSERT_EQ(problem, "") << Explain(seed, problem);
}

}  // namespace
}  // namespace quire::sim
