// The fuzz target of the GGUF loader: any bytes give a model or an error, never a signal.
// Thread-compatible; owns a one-worker pool for the life of the process.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace quire {

// Loads the file at `path` whole and CHECKs what a loaded model promises. The status of the loader.
absl::Status LoadAndCheck(const std::string& path);

// The same for everything before the weights' values: structure, configuration, vocabulary, places
// of tensors.
absl::Status ReadHeaderAndCheck(const std::string& path);

}  // namespace quire
