// Proof that the harness sees: a copy of the scheduler with one bug at a time (plant_bugs.py), each
// of which the random worlds must find. Each runs in a child process, since many end in a failed
// CHECK.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/property/traffic.h"

int planted_bug = 0;

namespace quire {
namespace {

constexpr uint64_t kSeeds = 200;

// Whether some world of the child found a problem or died.
bool Found(int bug) {
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    planted_bug = bug;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      if (!World(seed).Run().empty()) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(PlantedBugs, TheCopyWithoutABugIsSound) { EXPECT_FALSE(Found(0)); }

class PlantedBug : public testing::TestWithParam<std::pair<int, const char*>> {};

INSTANTIATE_TEST_SUITE_P(
    All, PlantedBug,
    testing::Values(
        std::pair(1, "KeepsTheBlocksOfAnEndedSequence"), std::pair(2, "FreesABlockTwice"),
        std::pair(3, "PreemptsTheOldest"), std::pair(4, "KeepsTheCountsOfAPreemptedSequence"),
        std::pair(5, "IsOffByOneAtABlockEdge"), std::pair(6, "SendsATokenAfterAnAbort"),
        std::pair(7, "GrantsOneTokenOverTheBudget"), std::pair(8, "LosesArrivalOrderOnPreemption"),
        std::pair(9, "ForgetsDeadlinesInTheQueue"), std::pair(10, "CountsAnOutcomeTwice"),
        std::pair(11, "WritesToTheWrongSlot"), std::pair(12, "KeysDrawsByThePlaceInTheBatch"),
        std::pair(13, "EndsASequenceTwice"), std::pair(14, "RunsAPausedSequence"),
        std::pair(15, "StarvesTheOldestPrompt"), std::pair(16, "AdmitsInAStepThatPreempted"),
        std::pair(17, "DrawsOneTokenTooMany"), std::pair(18, "ComputesARowTwice"),
        std::pair(19, "AllowsAnEndTooEarly"), std::pair(20, "IgnoresAbortsOfPausedSequences")),
    [](const auto& info) { return std::string(info.param.second); });

TEST_P(PlantedBug, IsFound) { EXPECT_TRUE(Found(GetParam().first)); }

}  // namespace
}  // namespace quire
