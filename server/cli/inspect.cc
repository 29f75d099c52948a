#include "server/cli/commands.h"

namespace quire {

int RunInspect(const Args&) { return Fail(kExitUsage, "inspect: not in this build yet"); }

}  // namespace quire
