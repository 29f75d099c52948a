// Reads a model file, checks all of it, and packs its weights. One call, any thread; uses the given
// pool.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/worker_pool.h"
#include "runtime/loader/vocab_data.h"
#include "runtime/model/model_config.h"
#include "runtime/model/weights.h"
#include "runtime/tensor/arena.h"

namespace quire {

struct LoadedModel {
  ModelConfig config;
  ModelWeights weights;  // views into arena
  VocabData vocab;
  Arena arena;
  std::string sha256;  // hex digest of the file
  std::vector<std::string>
      warnings;  // what the file holds and we ignore, one sentence each; for the log
};

struct LoadOptions {
  WorkerPool* pool = nullptr;  // required
  std::function<void(size_t done_bytes, size_t total_bytes)>
      progress;  // optional, from the calling thread
};

// INVALID_ARGUMENT names file, offset, key or tensor, found and expected; NOT_FOUND if it cannot be
// opened. After return no page of the file is used.
absl::StatusOr<LoadedModel> LoadModel(const std::string& path, const LoadOptions& options);

}  // namespace quire
