// Proof that the harness sees: a copy of the scheduler with one bug at a time (plant_bugs.py), each
// of which the random worlds must find. Each runs in a child process, since many end in a failed
// CHECK.
#include <gtest/gtest.h>

#include "tests/property/sim/isolate.h"
#include "tests/property/sim/run_seeds.h"

int planted_bug = 0;

namespace quire::sim {
namespace {

constexpr uint64_t kSeeds = 200;

// What the seeds find, or how the child dies; "" = nothing.
std::string Found(int bug) {
  const auto work = [&](Progress& progress) {
    planted_bug = bug;
    RunSeeds({.max_seeds = kSeeds}, progress);
  };
  const Progress progress = RunIsolated(work, 120);
  const std::string problem = progress.problem;
  if (!problem.empty())
    std::printf("seed %d: %.120s\n", static_cast<int>(progress.seed), progress.problem);
  return problem;
}

TEST(PlantedBugs, TheCopyWithoutABugIsSound) { EXPECT_EQ(Found(0), ""); }

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
        std::pair(19, "AllowsAnEndTooEarly"), std::pair(20, "IgnoresAbortsOfPausedSequences"),
        std::pair(21, "LeavesOutTheCacheDomain"), std::pair(22, "TrustsTheHash"),
        std::pair(23, "WritesIntoSharedBlocks"), std::pair(24, "PublishesBeforeCommit"),
        std::pair(25, "CachesWhatBypassesTheCache"),
        std::pair(26, "LeavesNothingToComputeAfterAFullHit"),
        std::pair(27, "KeepsAStaleTableAfterPreemption"),
        std::pair(28, "LeaksWhenADeadlineFiresInTheQueue"), std::pair(29, "LetsAnyNumberPass"),
        std::pair(30, "DropsTheWakeUpOfAWaitingRequest"), std::pair(31, "SleepsThroughADeadline"),
        std::pair(32, "DisplacesItsEquals"), std::pair(33, "PreemptsWithoutBound"),
        std::pair(34, "ServesTheLowestPriorityFirst"),
        std::pair(35, "FindsPartialBlocksOfOtherDomains"),
        std::pair(36, "LeavesNonFiniteBlocksToBeFound"),
        std::pair(37, "ServesTheTenantThatHadMost"), std::pair(38, "ForgetsTheWeightOfATenant"),
        std::pair(39, "LetsATenantSaveUpService"), std::pair(40, "ChargesAPromptTwice")),
    [](const auto& info) { return std::string(info.param.second); });

TEST_P(PlantedBug, IsFound) { EXPECT_NE(Found(GetParam().first), ""); }

}  // namespace
}  // namespace quire::sim
