#include "server/cli/commands.h"

namespace quire {

int RunBench(const Args&) { return Fail(kExitUsage, "bench: not in this build yet"); }

}  // namespace quire
