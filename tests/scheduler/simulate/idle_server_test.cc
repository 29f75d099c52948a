#include "scheduler/simulate/idle_server.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

SimulationOptions Options() {
  SimulationOptions options;
  options.replica.num_blocks = 256;
  options.replica.scheduler.context_tokens = 4096;
  options.replica.scheduler.step_tokens = 128;
  options.replicas = 3;
  return options;
}

CostModel FlatCost(double step_seconds) {
  CostModel cost;
  cost.seconds[static_cast<size_t>(CostTerm::kStep)] = step_seconds;
  return cost;
}

// All at once, in two sizes.
Trace Burst(size_t count) {
  Trace trace{.arrivals = {}, .tenants = {"default"}, .prefixes = {}};
  for (size_t i = 0; i < count; ++i) {
    trace.arrivals.push_back({.prompt_tokens = i % 2 == 0 ? 100 : 300, .output_tokens = 11});
  }
  return trace;
}

TEST(SimulateIdle, GivesEachRequestAServerToItself) {
  const SimulationResult result = SimulateIdle(Options(), FlatCost(0.01), Burst(40), 100);
  EXPECT_EQ(result.all().completed, 40);
  EXPECT_EQ(result.replicas.size(), 1u);
  EXPECT_NEAR(result.all().ttft.Quantile(0.4), 0.01, 1e-4) << "one step";
  EXPECT_NEAR(result.all().ttft.Max(), 0.03, 1e-9) << "three steps, and nobody before it";
  EXPECT_NEAR(result.all().itl.Max(), 0.01, 1e-9);
}

TEST(SimulateIdle, WaitsForRequestsThatTakeLong) {
  const SimulationResult result = SimulateIdle(Options(), FlatCost(1000), Burst(4), 100);
  EXPECT_NEAR(result.all().ttft.Max(), 3000, 1) << "hours apart, if need be";
}

TEST(SimulateIdle, TakesTheFirstOfManyRequests) {
  EXPECT_EQ(SimulateIdle(Options(), FlatCost(0.01), Burst(40), 7).all().arrived, 7);
}

TEST(SimulateIdle, CountsWhatFitsNoServer) {
  SimulationOptions options = Options();
  options.replica.num_blocks = 3;
  const SimulationResult result = SimulateIdle(options, FlatCost(0.01), Burst(2), 100);
  EXPECT_EQ(result.all().rejected, 1);
  EXPECT_EQ(result.Attainment(), 0.5);
}

}  // namespace
}  // namespace quire
