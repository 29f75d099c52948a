// Reads small files whose path came from a user: configuration, templates. Any thread; not inside a
// step.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

// The whole file. FAILED_PRECONDITION with path and cause for anything but a readable regular file
// of at most `max_bytes`; never waits for a pipe and never reads without end.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, size_t max_bytes);

}  // namespace quire
