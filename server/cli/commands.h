// The subcommands of `quire`, one file each. A command gets the arguments after its name, parses
// them itself, writes results to stdout and everything else to stderr, and returns an exit code.
// Main thread only.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace quire {

// Exit codes of every command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;        // a call failed, unhealthy, regression
inline constexpr int kExitUsage = 64;        // bad or unknown flag
inline constexpr int kExitUnavailable = 69;  // unreachable, or the address cannot be bound
inline constexpr int kExitInternal = 70;     // our fault
inline constexpr int kExitTryLater = 75;     // RESOURCE_EXHAUSTED
inline constexpr int kExitConfig = 78;       // configuration or model file
inline constexpr int kExitTimeout = 124;
inline constexpr int kExitInterrupted = 130;  // second signal, or Ctrl-C

using Args = std::vector<std::string>;

int RunServe(const Args& args);
int RunGenerate(const Args& args);
int RunChat(const Args& args);
int RunHealthcheck(const Args& args);
int RunInspect(const Args& args);
int RunBench(const Args& args);
int RunSimulate(const Args& args);

// Finds the command in argv and runs it; also --version and --help.
int RunCommandLine(int argc, char** argv);

// Prints "quire: MESSAGE" to stderr and returns `code`.
int Fail(int code, const std::string& message);

// The exit code for a failed call: UNAVAILABLE 69, RESOURCE_EXHAUSTED 75, DEADLINE_EXCEEDED 124,
// else 1.
int ExitCodeOfCall(const absl::Status& status);

}  // namespace quire
