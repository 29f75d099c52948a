// What a model file holds, for people (text) and programs (one JSON object): `quire inspect`. Pure;
// any thread.
#pragma once

#include <string>

#include "runtime/loader/model_file.h"
#include "runtime/loader/model_header.h"

namespace quire {

struct DescribeOptions {
  bool tensors = false;        // one entry per tensor
  bool tokenizer = false;      // control tokens and counts by kind
  bool chat_template = false;  // its source
  bool json = false;
  std::string sha256;  // shown if not empty
};

// Text ends with a newline; JSON is one line without invalid UTF-8.
std::string DescribeModel(const ModelFile& file, const ModelHeader& header,
                          const DescribeOptions& options);

}  // namespace quire
