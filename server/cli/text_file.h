// Writes a result to a file that the user named. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace quire {

// Replaces the file. FAILED_PRECONDITION with path and cause.
absl::Status WriteTextFile(const std::string& path, std::string_view text);

}  // namespace quire
