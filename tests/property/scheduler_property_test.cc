#include <gtest/gtest.h>

#include "tests/testing/requests.h"
#include "tests/testing/step_driver.h"

namespace quire {
namespace {

// D1 at every step k: preempting it there changes no token.
TEST(SchedulerProperty, PreemptionAtAnyStepChangesNoToken) {
  const auto make = [](int32_t num_blocks) {
    StepDriverOptions options;
    options.scheduler = {.context_tokens = 512, .step_tokens = 32};
    options.num_blocks = num_blocks;
    options.model.limits.vocab_size = 48;
    return StepDriver(options);
  };
  Request subject = MakeRequest(1, 60, 30);
  subject.prompt = RandomTokens(5, 60, 48);
  subject.sampling.temperature = 1;
  StepDriver alone = make(4);
  ASSERT_TRUE(alone.scheduler().Add(subject).ok());
  alone.RunUntilIdle();
  int32_t preempted = 0;
  for (int k = 0; k < 34; ++k) {
    StepDriver driver = make(3);
    ASSERT_TRUE(driver.scheduler().Add(subject).ok());
    for (int i = 0; i < k; ++i) driver.Step();
    // Paused, it gives its blocks to one that needs the whole pool.
    driver.scheduler().SetPaused(RequestId{1}, true);
    ASSERT_TRUE(driver.scheduler().Add(MakeRequest(2, 130, 3)).ok());
    driver.RunUntilIdle();
    driver.scheduler().SetPaused(RequestId{1}, false);
    driver.RunUntilIdle();
    ASSERT_EQ(driver.output(1).tokens, alone.output(1).tokens) << "preempted at step " << k;
    preempted += driver.output(1).preemptions;
  }
  EXPECT_GE(preempted, 20);
}

}  // namespace
}  // namespace quire
