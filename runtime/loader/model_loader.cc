#include "runtime/loader/model_loader.h"

#include <utility>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/loader/file_digest.h"
#include "runtime/loader/model_file.h"
#include "runtime/loader/model_header.h"
#include "runtime/loader/weight_packer.h"

namespace quire {
namespace {

absl::Status CheckRopeFactors(const ModelFile& file, std::span<const float> factors) {
  for (const float f : factors) {
    if (!(f > 0))
      return file.Error(absl::StrCat("tensor rope_freqs.weight: found ", f, ", expected above 0"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const std::string& path, const LoadOptions& options) {
  CHECK(options.pool != nullptr);
  ASSIGN_OR_RETURN(const ModelFile file, ModelFile::Open(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<ModelHeader> header, ReadModelHeader(file));
  file.Prefetch();
  FileDigest digest(file);
  ASSIGN_OR_RETURN(Arena arena, Arena::Create(header->plan.arena_bytes));
  RETURN_IF_ERROR(PackWeights(file, header->plan, arena, *options.pool, options.progress));
  RETURN_IF_ERROR(CheckRopeFactors(file, header->weights.rope_factors));
  if (header->weights.lm_head.data == nullptr) header->weights.lm_head = header->weights.embedding;
  LoadedModel model{.config = std::move(header->config),
                    .weights = std::move(header->weights),
                    .vocab = std::move(header->vocab),
                    .arena = std::move(arena),
                    .sha256 = {},
                    .warnings = std::move(header->warnings)};
  ASSIGN_OR_RETURN(model.sha256, digest.Take());
  return model;
}

}  // namespace quire
