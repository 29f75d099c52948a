// Reads a GGUF file's tokenizer keys. Pure; problems are collected in the KeyReader.
#pragma once

#include "runtime/loader/key_reader.h"
#include "runtime/loader/vocab_data.h"

namespace quire {

inline constexpr uint32_t kMaxVocab = 1 << 22;

// Sizes agree and every id is in range if keys.status() is OK afterwards. `warnings` is appended
// to.
VocabData ReadVocab(KeyReader& keys, std::vector<std::string>& warnings);

}  // namespace quire
