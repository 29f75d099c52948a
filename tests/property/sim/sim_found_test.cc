// What the simulation found, as it printed it: one named test per bug, so that it stays away.
//   test | introduced with | found by | fixed with
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

}  // namespace
}  // namespace quire::sim
