// All of a model file but its weights' values: checked structure, configuration, vocabulary, and
// where each tensor goes. What LoadModel starts from and `quire inspect` shows. Plain value; not
// movable, since the plan points into the header and weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/loader/gguf.h"
#include "runtime/loader/llama_reader.h"
#include "runtime/loader/model_file.h"
#include "runtime/loader/vocab_data.h"
#include "runtime/model/model_config.h"
#include "runtime/model/weights.h"

namespace quire {

struct ModelHeader {
  ModelHeader() = default;
  ModelHeader(const ModelHeader&) = delete;
  ModelHeader& operator=(const ModelHeader&) = delete;

  GgufHeader gguf;
  ModelConfig config;
  VocabData vocab;
  ModelWeights weights;               // shapes; the data is null
  WeightPlan plan;                    // into gguf and weights
  std::vector<std::string> warnings;  // what is ignored, for the log
};

// INVALID_ARGUMENT names file, offset, key or tensor, found and expected.
absl::StatusOr<std::unique_ptr<ModelHeader>> ReadModelHeader(const ModelFile& file);

// From a header that was parsed before: the keys and the tensor table are checked for their
// meaning.
absl::Status InterpretHeader(const ModelFile& file, ModelHeader& header);

}  // namespace quire
