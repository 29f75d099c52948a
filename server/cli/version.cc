#include "server/cli/version.h"

namespace quire {

const char* const kVersion = QUIRE_VERSION_TEXT;
const char* const kRevision = QUIRE_REVISION_TEXT;

}  // namespace quire
