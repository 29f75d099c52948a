#include "scheduler/scheduler.h"

#include <gtest/gtest.h>

#include "tests/testing/requests.h"
#include "tests/testing/step_driver.h"

namespace quire {
namespace {

TEST(Scheduler, RunsARequestToItsLength) {
  StepDriver driver({});
  ASSERT_TRUE(driver.scheduler().Add(MakeRequest(1, 100, 5)).ok());
  EXPECT_EQ(driver.Step(), "100 tokens\n1.0: 0 + 100, blocks 0 1, draws\nadmitted 1.0\n");
  EXPECT_EQ(driver.Step(), "1 tokens\n1.0: 100 + 1, blocks 0 1, draws\n");
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(1).tokens.size(), 5u);
  EXPECT_EQ(driver.output(1).finish, FinishReason::kLength);
  EXPECT_EQ(driver.scheduler().Stats().blocks_used, 0);
}

}  // namespace
}  // namespace quire
