// What the simulation found, as it printed it: one named test per bug, so that it stays away.
//   test, from seed                                   introduced by      fixed by
//   OutputsThatShareATailInAFullPoolGoOn, 42          forks of outputs   tails with holders are not
//   published OutputsThatKeepTheirBlocksStartOnlyIfTheyFit, 145 forks of outputs   places within
//   the pool
#include <gtest/gtest.h>

#include "tests/property/sim/sim_world.h"

namespace quire::sim {
namespace {

// Not a bug: the smallest case that preempts, resumes and ends, as an example of the vocabulary.
TEST(SimFound, AStalledRequestGivesItsBlocksAndComesBack) {
  const Case c{.config = {.num_blocks = 3},
               .ops = {Add({.id = 1, .prompt = 60, .max_tokens = 30}), Step(), Step(), Stall(1),
                       Add({.id = 2, .prompt = 130, .max_tokens = 3}), Step(), Step(), Resume(1)}};
  const Result result = RunCase(c);
  EXPECT_EQ(result.problem, "");
  EXPECT_EQ(result.coverage.preemptions, 1);
  EXPECT_EQ(result.coverage.whole, 2);
}

// The first output took its sibling's blocks to copy the tail they shared, which the sibling had
// just made findable: so it had to be copied still, and there was no block.
TEST(SimFound, OutputsThatShareATailInAFullPoolGoOn) {
  const Case c{
      .config = {.num_blocks = 4, .ageing_ns = 20, .max_bypasses = 3, .max_preemptions = 2},
      .ops = {Add({.id = 10, .prompt = 193, .max_tokens = 2, .n = 2})}};
  EXPECT_EQ(RunCase(c).problem, "");
}

// Four outputs that may not be preempted started at once, alone, on a pool for one.
TEST(SimFound, OutputsThatKeepTheirBlocksStartOnlyIfTheyFit) {
  const Case c{.config = {.num_blocks = 2, .prefix_cache = false, .max_preemptions = 0},
               .ops = {Add({.id = 3, .max_tokens = 65, .n = 4})}};
  EXPECT_EQ(RunCase(c).problem, "");
}

}  // namespace
}  // namespace quire::sim
