#include "server/cli/commands.h"

namespace quire {

int RunChat(const Args&) { return Fail(kExitUsage, "chat: not in this build yet"); }

}  // namespace quire
