// Makes a tokenizer of a model file's vocabulary, on the `tokenizers` library of the Rust bridge.
// Byte-level BPE
// ("gpt2") with its pre-tokenizer by name; ids equal Hugging Face's. Any thread; copies what it
// needs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/loader/vocab_data.h"
#include "runtime/text/tokenizer.h"

namespace quire {

// INVALID_ARGUMENT for a vocabulary that makes no tokenizer: an unknown model or pre-tokenizer (the
// message lists the known ones), merges that do not fit the pieces, ids out of range.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const VocabData& vocab);

// Names of pre-tokenizers that MakeTokenizer knows.
const std::vector<std::string>& KnownPreTokenizers();

}  // namespace quire
