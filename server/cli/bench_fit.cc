#include "server/cli/bench_fit.h"

#include <cstdio>
#include <filesystem>

#include "runtime/base/cpu_features.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/cpu_model_runner.h"
#include "server/cli/cost_file.h"
#include "server/cli/text_file.h"

namespace quire {

absl::Status FitStepCost(const LoadedModel& model, WorkerPool* pool, const FitOptions& options) {
  CostFile file{.model = std::filesystem::path(options.model_path).filename().string(),
                .cpu = CpuBrand(),
                .isa = std::string(IsaName(ActiveIsa())),
                .kv_dtype = std::string(KvDTypeName(options.grid.kv_dtype)),
                .threads = options.threads,
                .context_tokens = model.config.context_tokens,
                .kv_block_bytes = static_cast<int64_t>(
                    CpuModelRunner::KvBlockBytes(model.config, options.grid.kv_dtype)),
                .fit = {},
                .points = {}};
  ASSIGN_OR_RETURN(file.points, MeasureSteps(model, pool, options.grid));
  ASSIGN_OR_RETURN(file.fit, FitCost(file.points));
  RETURN_IF_ERROR(WriteTextFile(options.out_path, CostFileJson(file)));
  std::fprintf(
      stderr,
      "bench: %zu step shapes fitted, relative error p50 %.1f %%, p90 %.1f %%, max %.1f %%; "
      "wrote %s\n",
      file.points.size(), 100 * file.fit.p50_error, 100 * file.fit.p90_error,
      100 * file.fit.max_error, options.out_path.c_str());
  return absl::OkStatus();
}

}  // namespace quire
