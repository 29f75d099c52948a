// The release and the source revision this binary was built from. Constants.
#pragma once

namespace quire {

extern const char* const kVersion;   // "0.1.0"
extern const char* const kRevision;  // of the source, or "unknown"

}  // namespace quire
