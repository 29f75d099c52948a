// The simulation of every change: two million steps of random traffic and faults in two shards,
// each step compared with a shadow. A failure names its seed and prints a small test of it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/property/sim/run_seeds.h"
#include "tests/property/sim/shrink.h"
#include "tests/property/sim/sim_world.h"

namespace quire::sim {
namespace {

constexpr uint64_t kShards = 2;
constexpr int64_t kSteps = 2'000'000;  // of all shards; QUIRE_SIM_STEPS asks for another number

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
  EXPECT_GE(seen.accepted, 20'000);
  EXPECT_GE(seen.too_large, 100);
  EXPECT_GE(seen.refused, 2000);
  EXPECT_GE(seen.whole, 4000);
  EXPECT_GE(seen.preemptions, 3000);
  EXPECT_GE(seen.paused_victims, 400);
  EXPECT_GE(seen.recomputed, 20'000);
  EXPECT_GE(seen.aborts_in_step, 1000);
  EXPECT_GE(seen.stalls_in_step, 1000);
  EXPECT_GE(seen.failed_draws, 1000);
  EXPECT_GE(seen.nan_rows, 40);
  EXPECT_GE(seen.timed_out_waiting, 400);
  EXPECT_GE(seen.timed_out_running, 400);
  EXPECT_GE(seen.queue_aged, 400);
  EXPECT_GE(seen.drains, 100);
  EXPECT_GE(seen.pool_bound, 100);
  EXPECT_GE(seen.hits, 1000);
  EXPECT_GE(seen.partial_hits, 600);
  EXPECT_GE(seen.copies, 600);
  EXPECT_GE(seen.merged, 200);
  EXPECT_GE(seen.evicted, 10'000);
  EXPECT_GE(seen.bypasses, 1000);
  EXPECT_GE(seen.displacements, 600);
  EXPECT_GE(seen.forks, 2000);
  EXPECT_GE(seen.output_aborts, 40);
  EXPECT_GE(seen.windows, 3000);
  EXPECT_GE(seen.deferrals, 300);
  EXPECT_GE(seen.by_share, 100);
}

class Sim : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Shard, Sim, testing::Range<uint64_t>(0, kShards));

TEST_P(Sim, AMillionStepsKeepEveryRule) {
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
