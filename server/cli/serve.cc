#include "server/cli/commands.h"

namespace quire {

int RunServe(const Args&) { return Fail(kExitUsage, "serve: not in this build yet"); }

}  // namespace quire
