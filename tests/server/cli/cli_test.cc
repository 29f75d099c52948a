#include <set>
#include <string>

#include "gtest/gtest.h"
#include "server/cli/commands.h"
#include "server/cli/counted.h"
#include "server/cli/service_facts.h"

namespace quire {
namespace {

TEST(ExitCodeOfCall, TellsScriptsWhatToDo) {
  EXPECT_EQ(ExitCodeOfCall(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOfCall(absl::UnavailableError("")), 69);
  EXPECT_EQ(ExitCodeOfCall(absl::ResourceExhaustedError("")), 75);
  EXPECT_EQ(ExitCodeOfCall(absl::DeadlineExceededError("")), 124);
  EXPECT_EQ(ExitCodeOfCall(absl::InvalidArgumentError("")), 1);
  EXPECT_EQ(ExitCodeOfCall(absl::InternalError("")), 1);
}

TEST(Counted, IsSingularForOne) {
  EXPECT_EQ(Counted(1, "thread"), "1 thread");
  EXPECT_EQ(Counted(0, "thread"), "0 threads");
  EXPECT_EQ(Counted(12, "thread"), "12 threads");
}

TEST(InitialStats, GiveEachHistogramItsOwnBounds) {
  ServerConfig config;
  for (size_t i = 0; i < kLatencyFamilies.size(); ++i) {
    config.metrics_buckets.push_back(
        {.family = std::string(kLatencyFamilies[i]), .bounds = {1.0 + static_cast<double>(i)}});
  }
  const StreamStats stats = InitialStats(config);
  std::set<double> seen;
  for (const LatencyCounts* h :
       {&stats.time_to_first_token, &stats.inter_token, &stats.time_per_output_token,
        &stats.request, &stats.intake, &stats.queue, &stats.prefill, &stats.decode}) {
    ASSERT_EQ(h->bounds.size(), 1U);
    seen.insert(h->bounds[0]);
  }
  EXPECT_EQ(seen.size(), kLatencyFamilies.size());
  EXPECT_EQ(InitialStats({}).request.bounds.size(), kDurationBounds.size());
}

TEST(RunCommandLine, RefusesUnknownCommands) {
  std::string program = "quire", command = "nonsense";
  char* arguments[] = {program.data(), command.data(), nullptr};
  EXPECT_EQ(RunCommandLine(2, arguments), kExitUsage);
  EXPECT_EQ(RunCommandLine(1, arguments), kExitUsage);
}

}  // namespace
}  // namespace quire
