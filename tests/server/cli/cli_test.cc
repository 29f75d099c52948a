#include <string>

#include "gtest/gtest.h"
#include "server/cli/commands.h"
#include "server/cli/watchdog.h"

namespace quire {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(JudgePulse, IsFineWhileIdleOrRecent) {
  EXPECT_EQ(JudgePulse(0, 0.01), Pulse::kFine);
  EXPECT_EQ(JudgePulse(15 * kSecond, 0.01), Pulse::kFine);
}

TEST(JudgePulse, StallsAfterFifteenSecondsAndDiesAfterSixty) {
  EXPECT_EQ(JudgePulse(15 * kSecond + 1, 0.01), Pulse::kStalled);
  EXPECT_EQ(JudgePulse(60 * kSecond, 0.01), Pulse::kStalled);
  EXPECT_EQ(JudgePulse(60 * kSecond + 1, 0.01), Pulse::kDead);
}

TEST(JudgePulse, GivesSlowHostsTwentySteps) {
  EXPECT_EQ(JudgePulse(39 * kSecond, 2), Pulse::kFine);
  EXPECT_EQ(JudgePulse(41 * kSecond, 2), Pulse::kStalled);
  EXPECT_EQ(JudgePulse(161 * kSecond, 2), Pulse::kDead);
}

TEST(ExitCodeOfCall, TellsScriptsWhatToDo) {
  EXPECT_EQ(ExitCodeOfCall(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOfCall(absl::UnavailableError("")), 69);
  EXPECT_EQ(ExitCodeOfCall(absl::ResourceExhaustedError("")), 75);
  EXPECT_EQ(ExitCodeOfCall(absl::DeadlineExceededError("")), 124);
  EXPECT_EQ(ExitCodeOfCall(absl::InvalidArgumentError("")), 1);
  EXPECT_EQ(ExitCodeOfCall(absl::InternalError("")), 1);
}

TEST(RunCommandLine, RefusesUnknownCommands) {
  std::string program = "quire", command = "nonsense";
  char* arguments[] = {program.data(), command.data(), nullptr};
  EXPECT_EQ(RunCommandLine(2, arguments), kExitUsage);
  EXPECT_EQ(RunCommandLine(1, arguments), kExitUsage);
}

}  // namespace
}  // namespace quire
