#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/cli/commands.h"
#include "server/cli/version.h"

namespace quire {
namespace {

struct Command {
  const char* name;
  int (*run)(const Args&);
  const char* summary;
};

constexpr Command kCommands[] = {
    {"serve", RunServe, "serve a model over gRPC"},
    {"generate", RunGenerate, "continue one prompt"},
    {"chat", RunChat, "talk with a model"},
    {"healthcheck", RunHealthcheck, "ask a server whether it serves"},
    {"inspect", RunInspect, "describe a model file"},
    {"bench", RunBench, "measure the engine"},
    {"simulate", RunSimulate, "predict latency and capacity under a trace"},
};

void PrintHelp(std::FILE* out) {
  std::fputs("usage: quire COMMAND [FLAGS]\n", out);
  for (const Command& c : kCommands) std::fprintf(out, "  %-12s %s\n", c.name, c.summary);
  std::fputs(
      "`quire COMMAND --help` lists the flags of a command; `quire --version` the release.\n", out);
}

}  // namespace

int Fail(int code, const std::string& message) {
  std::fprintf(stderr, "quire: %s\n", message.c_str());
  return code;
}

int ExitCodeOfCall(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kUnavailable:
      return kExitUnavailable;
    case absl::StatusCode::kResourceExhausted:
      return kExitTryLater;
    case absl::StatusCode::kDeadlineExceeded:
      return kExitTimeout;
    default:
      return kExitFailed;
  }
}

int RunCommandLine(int argc, char** argv) {
  if (argc < 2) {
    PrintHelp(stderr);
    return kExitUsage;
  }
  const std::string name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") {
    PrintHelp(stdout);
    return kExitOk;
  }
  if (name == "--version") {
    std::printf("quire %s (%s)\n", kVersion, kRevision);
    return kExitOk;
  }
  for (const Command& c : kCommands) {
    if (name == c.name) return c.run(Args(argv + 2, argv + argc));
  }
  return Fail(kExitUsage,
              absl::StrCat("unknown command: ", name, "; `quire --help` lists the commands"));
}

}  // namespace quire
