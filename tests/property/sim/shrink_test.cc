// The tools of the simulation, tested on problems that are made up.
#include "tests/property/sim/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/log/check.h"
#include "tests/property/sim/isolate.h"
#include "tests/property/sim/sim_world.h"

namespace quire::sim {
namespace {

bool HasAbort(const Case& c) {
  return std::ranges::any_of(c.ops, [](const Op& op) { return op.kind == OpKind::kAbort; });
}
bool HasFork(const Case& c) {
  return std::ranges::any_of(c.ops, [](const Op& op) {
    return op.kind == OpKind::kSubmit && op.submit.n > 1 && op.submit.prompt > 20;
  });
}

TEST(Shrink, LeavesWhatTheProblemNeedsAndNothingElse) {
  uint64_t seed = 1;
  while (!HasAbort(DrawCase(seed)) || !HasFork(DrawCase(seed))) ++seed;
  const Trial trial = [](const Case& c) {
    return HasAbort(c) && HasFork(c) ? std::string("made up") : std::string();
  };
  const Shrunk shrunk = Shrink(DrawCase(seed), trial);
  ASSERT_EQ(shrunk.smallest.ops.size(), 2u);
  EXPECT_TRUE(HasAbort(shrunk.smallest));
  for (const Op& op : shrunk.smallest.ops) {
    if (op.kind == OpKind::kSubmit) {
      EXPECT_EQ(op.submit.prompt, 21);
      EXPECT_EQ(op.submit.max_tokens, 1);
    }
  }
}

TEST(Shrink, DoesNotSlipToAnotherProblem) {
  const Case c{.config = {}, .ops = {Tick(1), Tick(2), Tick(3), Tick(4)}};
  const Trial trial = [](const Case& other) -> std::string {
    return other.ops.size() >= 3 ? "three" : "fewer";
  };
  EXPECT_EQ(Shrink(c, trial).smallest.ops.size(), 3u);
}

TEST(Shrink, PrintsACaseAsATest) {
  const Case c{.config = {.num_blocks = 3},
               .ops = {Add({.id = 1, .prompt = 62, .max_tokens = 4, .sampled = true}),
                       Step(5, Fault::kAbort, 2), Abort(1, FinishReason::kCancelled), Stall(1),
                       Resume(1), Tick(7), Step(), Drain()}};
  EXPECT_EQ(ToCode(c, "Name"),
            "TEST(SimFound, Name) {\n"
            "  const Case c{\n"
            "      .config = {.num_blocks = 3},\n"
            "      .ops = {Add({.id = 1, .prompt = 62, .max_tokens = 4, .sampled = true}),\n"
            "              Step(5, Fault::kAbort, 2),\n"
            "              Abort(1, FinishReason::kCancelled),\n"
            "              Stall(1),\n"
            "              Resume(1),\n"
            "              Tick(7),\n"
            "              Step(),\n"
            "              Drain()}};\n"
            "  EXPECT_EQ(RunCase(c).problem, \"\");\n"
            "}\n");
}

TEST(Isolate, ReportsAFailedCheckAndHowFarItCame) {
  const Progress progress = RunIsolated(
      [](Progress& p) {
        p.seed = 7;
        CHECK(p.seed != 7) << "seven";
      },
      10);
  EXPECT_EQ(progress.seed, 7u);
  EXPECT_NE(std::string(progress.problem).find("seven"), std::string::npos) << progress.problem;
}

TEST(Isolate, EndsWhatDoesNotEnd) {
  const Progress progress = RunIsolated(
      [](Progress& p) {
        while (p.steps >= 0) p.steps = 1;
      },
      1);
  EXPECT_EQ(std::string(progress.problem).substr(0, 11), "out of time");
}

}  // namespace
}  // namespace quire::sim
