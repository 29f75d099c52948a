#include <cstdio>
#include <cstdlib>
#include <exception>

#include "server/cli/commands.h"

// What the standard library throws when the system refuses a thread or memory at start.
int main(int argc, char** argv) {
  // gRPC's own log lines are not for operators, and clients can provoke them.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  try {
    return quire::RunCommandLine(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quire: the system refused a resource: %s\n", error.what());
    return quire::kExitInternal;
  }
}
