#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/property/traffic.h"
#include "tests/testing/requests.h"

namespace quire {
namespace {

// QUIRE_TEST_SEEDS sets how many; a failure names its seed.
TEST(SchedulerProperty, RandomTrafficKeepsEveryInvariant) {
  const char* asked = std::getenv("QUIRE_TEST_SEEDS");
  const uint64_t seeds = asked == nullptr ? 1000 : std::strtoull(asked, nullptr, 10);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    ASSERT_EQ(World(seed).Run(), "") << "seed " << seed;
  }
}

// The plans of a run, as text.
std::string Log(uint64_t seed) {
  StepDriver driver(RandomOptions(seed));
  std::string log;
  for (uint64_t id = 1; id <= 6; ++id) {
    Request request = MakeRequest(id, static_cast<int32_t>(30 * id), 40);
    request.prompt = RandomTokens(seed + id, static_cast<int32_t>(20 * id), 48);
    driver.scheduler().Add(request).IgnoreError();
    log += driver.Step();
  }
  while (driver.scheduler().HasWork()) log += driver.Step();
  return log;
}

TEST(SchedulerProperty, TheSameTrafficGivesTheSameDecisions) {
  for (uint64_t seed = 1; seed <= 30; ++seed) ASSERT_EQ(Log(seed), Log(seed));
}

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
