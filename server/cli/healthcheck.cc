#include "server/cli/commands.h"

namespace quire {

int RunHealthcheck(const Args&) { return Fail(kExitUsage, "healthcheck: not in this build yet"); }

}  // namespace quire
