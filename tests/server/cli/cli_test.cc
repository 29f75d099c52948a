#include <string>

#include "gtest/gtest.h"
#include "server/cli/commands.h"
#include "server/cli/counted.h"

namespace quire {
namespace {

TEST(ExitCodeOfCall, TellsScriptsWhatToDo) {
  EXPECT_EQ(ExitCodeOfCall(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOfCall(absl::UnavailableError("")), 69);
  EXPECT_EQ(ExitCodeOfCall(absl::ResourceExhaustedError("")), 75);
  EXPECT_EQ(ExitCodeOfCall(absl::DeadlineExceededError("")), 124);
  EXPECT_EQ(ExitCodeOfCall(absl::InvalidArgumentError("")), 1);
  EXPECT_EQ(ExitCodeOfCall(absl::InternalError("")), 1);
}

TEST(Counted, IsSingularForOne) {
  EXPECT_EQ(Counted(1, "thread"), "1 thread");
  EXPECT_EQ(Counted(0, "thread"), "0 threads");
  EXPECT_EQ(Counted(12, "thread"), "12 threads");
}

TEST(RunCommandLine, RefusesUnknownCommands) {
  std::string program = "quire", command = "nonsense";
  char* arguments[] = {program.data(), command.data(), nullptr};
  EXPECT_EQ(RunCommandLine(2, arguments), kExitUsage);
  EXPECT_EQ(RunCommandLine(1, arguments), kExitUsage);
}

}  // namespace
}  // namespace quire
