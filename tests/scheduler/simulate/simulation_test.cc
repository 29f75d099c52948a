#include "scheduler/simulate/simulation.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/simulate/generate_arrivals.h"
#include "scheduler/simulate/report_table.h"
#include "scheduler/simulate/result_plot.h"

namespace quire {
namespace {

constexpr double kStepSeconds = 0.01;

// Every step takes the same time.
CostModel FlatCost() {
  CostModel cost;
  cost.seconds[static_cast<size_t>(CostTerm::kStep)] = kStepSeconds;
  return cost;
}

SimulationOptions Options() {
  SimulationOptions options;
  options.replica.num_blocks = 256;
  options.replica.scheduler.context_tokens = 4096;
  options.replica.scheduler.step_tokens = 128;
  return options;
}

Trace OneTenant(std::vector<Arrival> arrivals) {
  return {.arrivals = std::move(arrivals), .tenants = {"default"}, .prefixes = {}};
}

Trace Poisson(double rate, double seconds, const char* prompt, const char* output) {
  ArrivalOptions arrivals;
  arrivals.rate = rate;
  arrivals.seconds = seconds;
  arrivals.prompt_tokens = *LengthDistribution::Parse(prompt);
  arrivals.output_tokens = *LengthDistribution::Parse(output);
  arrivals.tenants = {{.name = "a", .share = 2}, {.name = "b"}};
  return *GenerateArrivals(arrivals);
}

TEST(Simulate, TakesTheStepsThatARequestNeeds) {
  const Trace trace = OneTenant({{.time_ns = 5, .prompt_tokens = 300, .output_tokens = 11}});
  const SimulationResult result = Simulate(Options(), FlatCost(), trace);
  EXPECT_EQ(result.replicas[0].steps, 3 + 10) << "chunks of 128, then a token a step";
  EXPECT_NEAR(result.all().ttft.Max(), 3 * kStepSeconds, 1e-9);
  EXPECT_NEAR(result.all().e2e.Max(), 13 * kStepSeconds, 1e-9);
  EXPECT_EQ(result.all().output_tokens, 11);
  EXPECT_NEAR(result.Utilisation(), 1, 1e-6);
  EXPECT_EQ(result.Scheduler().prefill_tokens, 300);
  EXPECT_EQ(result.Scheduler().decode_tokens, 10);
}

TEST(Simulate, BatchesWhatArrivesDuringAStepIntoTheNext) {
  const Trace trace = OneTenant({{.time_ns = 0, .prompt_tokens = 10, .output_tokens = 3},
                                 {.time_ns = 4'000'000, .prompt_tokens = 10, .output_tokens = 1}});
  const SimulationResult result = Simulate(Options(), FlatCost(), trace);
  EXPECT_EQ(result.replicas[0].steps, 3);
  EXPECT_NEAR(result.all().ttft.Max(), 0.016, 1e-9) << "6 ms to the edge, then one step";
}

TEST(Simulate, AgreesWithTheMeanWaitOfAnMD1Queue) {
  // One slot, one step per request: arrivals at random, service always kStepSeconds.
  SimulationOptions options = Options();
  options.replica.scheduler.max_running = 1;
  options.replica.scheduler.max_waiting = 100'000;
  options.replica.scheduler.max_waiting_tokens = 1 << 30;
  for (const double load : {0.3, 0.6, 0.8}) {
    const Trace trace = Poisson(load / kStepSeconds, 2000, "8", "1");
    const SimulationResult result = Simulate(options, FlatCost(), trace);
    ASSERT_EQ(result.all().completed, static_cast<int64_t>(trace.arrivals.size()));
    const double wait = result.all().ttft.Mean() - kStepSeconds;
    EXPECT_NEAR(wait / (load * kStepSeconds / (2 * (1 - load))), 1, 0.04) << load;
    EXPECT_NEAR(result.Utilisation(), load, 0.02);
  }
}

TEST(Simulate, IsDeterministic) {
  SimulationOptions options = Options();
  options.replicas = 3;
  options.replica.num_blocks = 30;
  const Trace trace = Poisson(20, 30, "20..400", "exp:40");
  const auto text = [&] {
    const SimulationResult result = Simulate(options, FlatCost(), trace);
    return absl::StrCat(LatencyTable(result.groups, result.seconds), ReplicaTable(result),
                        ResultPlot(result, "t", "s"));
  };
  const std::string once = text();
  EXPECT_EQ(once, text());
  EXPECT_NE(once.find("b "), std::string::npos);
}

TEST(Simulate, EndsEveryRequestOnceUnderPreemptionAndFullQueues) {
  SimulationOptions options = Options();
  options.replica.num_blocks = 24;
  options.replica.scheduler.max_waiting = 40;
  const Trace trace = Poisson(30, 60, "20..400", "exp:60");
  const SimulationResult result = Simulate(options, FlatCost(), trace);
  const GroupTotals& all = result.all();
  EXPECT_EQ(all.arrived, static_cast<int64_t>(trace.arrivals.size()));
  EXPECT_EQ(all.completed + all.rejected + all.expired, all.arrived);
  EXPECT_GT(all.rejected, 0);
  EXPECT_GT(all.completed, 0);
  EXPECT_GT(result.Scheduler().preemptions, 0);
  EXPECT_GT(result.Scheduler().recompute_tokens, 0);
  const LoadSample mean = result.timeline.MeanUntil(result.seconds);
  EXPECT_GT(mean.waiting, 10);
  EXPECT_GT(mean.blocks_used, 12);
  EXPECT_LE(mean.blocks_used, 24);
  EXPECT_NEAR(mean.busy, result.Utilisation(), 1e-6);
}

TEST(Simulate, RejectsWhatCanNeverFitAndEndsWhatWaitsTooLong) {
  SimulationOptions options = Options();
  options.replica.scheduler.max_running = 1;
  options.replica.scheduler.max_queue_ns = 500'000'000;
  const Trace trace = OneTenant({{.time_ns = 0, .prompt_tokens = 5000, .output_tokens = 5},
                                 {.time_ns = 0, .prompt_tokens = 10, .output_tokens = 100},
                                 {.time_ns = 0, .prompt_tokens = 10, .output_tokens = 5}});
  const SimulationResult result = Simulate(options, FlatCost(), trace);
  EXPECT_EQ(result.all().rejected, 1);
  EXPECT_EQ(result.all().completed, 1);
  EXPECT_EQ(result.all().expired, 1);
  EXPECT_NEAR(result.Attainment(), 1 / 3.0, 1e-9) << "who is refused is not served well";
}

TEST(Simulate, SharesRequestsAmongReplicas) {
  SimulationOptions options = Options();
  options.replicas = 4;
  const Trace trace = Poisson(40, 50, "64..300", "exp:50");
  options.routing = Routing::kRoundRobin;
  const SimulationResult turns = Simulate(options, FlatCost(), trace);
  for (const ReplicaTotals& r : turns.replicas) {
    EXPECT_NEAR(static_cast<double>(r.requests), static_cast<double>(trace.arrivals.size()) / 4, 1);
  }
  options.routing = Routing::kLeastLoaded;
  const SimulationResult least = Simulate(options, FlatCost(), trace);
  options.replicas = 1;
  const SimulationResult alone = Simulate(options, FlatCost(), trace);
  EXPECT_EQ(least.all().completed, least.all().arrived);
  EXPECT_LT(least.all().e2e.Mean(), alone.all().e2e.Mean());
}

TEST(Simulate, KeepsAPrefixOnOneReplica) {
  SimulationOptions options = Options();
  options.replicas = 4;
  options.routing = Routing::kPrefixAffinity;
  Trace trace = Poisson(20, 20, "64..300", "5");
  trace.prefixes = {"p"};
  for (Arrival& a : trace.arrivals) a.prefix = 0;
  const SimulationResult result = Simulate(options, FlatCost(), trace);
  int32_t used = 0;
  for (const ReplicaTotals& r : result.replicas) used += r.requests > 0;
  EXPECT_EQ(used, 1);
}

}  // namespace
}  // namespace quire
