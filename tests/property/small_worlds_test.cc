// Every order of a few operations on the smallest worlds.
#include <gtest/gtest.h>

#include "tests/property/traffic.h"
#include "tests/testing/requests.h"

namespace quire {
namespace {

constexpr int kOperations = 8;

void Apply(World& world, int operation) {
  switch (operation) {
    case 0:
      return world.Submit(MakeRequest(1, 62, 4));  // grows into a second block
    case 1:
      return world.Submit(MakeRequest(2, 126, 4));  // two blocks, then three
    case 2:
      return world.Submit(MakeRequest(3, 5, 2));
    case 3:
      return world.Abort(1, FinishReason::kAborted);
    case 4:
      return world.Pause(1, true);
    case 5:
      return world.Pause(1, false);
    case 6:
      return world.Step();
    default:
      return world.Step(true);
  }
}

TEST(SmallWorlds, EveryOrderOfFiveOperationsKeepsEveryInvariant) {
  StepDriverOptions options;
  options.scheduler = {
      .context_tokens = 192, .step_tokens = 70, .max_running = 3, .max_waiting = 3};
  options.num_blocks = 4;
  options.model.fatal = false;
  options.model.limits.vocab_size = 256;
  int worlds = 1;
  for (int i = 0; i < 4; ++i) worlds *= kOperations;
  for (int first : {0, 1}) {
    for (int code = 0; code < worlds; ++code) {
      World world(options);
      Apply(world, first);
      for (int rest = code, i = 0; i < 4; ++i, rest /= kOperations)
        Apply(world, rest % kOperations);
      ASSERT_EQ(world.Finish(), "")
          << "operations " << first << " then " << code << " in base " << kOperations;
    }
  }
}

}  // namespace
}  // namespace quire
