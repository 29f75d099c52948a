#include "server/cli/commands.h"

namespace quire {

int RunGenerate(const Args&) { return Fail(kExitUsage, "generate: not in this build yet"); }

}  // namespace quire
