#include "runtime/loader/model_header.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/loader/key_reader.h"
#include "runtime/loader/vocab_reader.h"

namespace quire {
namespace {

void CheckFormat(KeyReader& keys, const GgufHeader& gguf) {
  if (keys.Uint("split.count", {}, 0) > 1)
    keys.Problem("split.count", "the file is one of several shards, expected one file");
  const uint32_t version = keys.Uint("general.quantization_version", {}, 2);
  if (version != 2) {
    keys.Problem("general.quantization_version", absl::StrCat("found ", version, ", expected 2"));
  }
  if (gguf.tensors.empty()) keys.Problem("", "no tensors (a vocabulary alone?)");
}

}  // namespace

absl::Status InterpretHeader(const ModelFile& file, ModelHeader& header) {
  KeyReader keys(file, header.gguf);
  CheckFormat(keys, header.gguf);
  const std::string architecture = keys.String("general.architecture");
  header.vocab = ReadVocab(keys, header.warnings);
  // Without an architecture the keys of the only family are what is missing, so they are listed as
  // well.
  if (architecture == "llama" || architecture.empty()) {
    const auto vocab_size = static_cast<uint32_t>(header.vocab.pieces.size());
    header.config = ReadLlamaConfig(keys, vocab_size, header.warnings);
  } else {
    keys.Problem("general.architecture",
                 absl::StrCat("found \"", Printable(architecture), "\", supported: llama"));
  }
  if (architecture.empty() && keys.Has("general.architecture")) {
    keys.Problem("general.architecture", "found \"\", supported: llama");
  }
  RETURN_IF_ERROR(keys.status());
  ASSIGN_OR_RETURN(header.plan, PlanLlamaWeights(file, header.gguf, header.config, header.weights,
                                                 header.warnings));
  if (header.gguf.data_end < file.size() &&
      file.size() - header.gguf.data_end >= header.gguf.alignment) {
    header.warnings.push_back(absl::StrCat(file.size() - header.gguf.data_end,
                                           " bytes after the last tensor are ignored"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ModelHeader>> ReadModelHeader(const ModelFile& file) {
  auto header = std::make_unique<ModelHeader>();
  ASSIGN_OR_RETURN(header->gguf, ParseGguf(file));
  RETURN_IF_ERROR(InterpretHeader(file, *header));
  return header;
}

}  // namespace quire
