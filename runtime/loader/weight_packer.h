// Reads the tensors of a plan from the file and packs them into an arena, on all workers of a pool.
// One call at a time; the arena must have plan.arena_bytes left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "runtime/base/worker_pool.h"
#include "runtime/loader/llama_reader.h"
#include "runtime/loader/model_file.h"
#include "runtime/tensor/arena.h"

namespace quire {

// Sets the data of every matrix and vector of the plan. INVALID_ARGUMENT names a tensor that holds
// NaN or infinity, or a file that became shorter.
absl::Status PackWeights(const ModelFile& file, const WeightPlan& plan, Arena& arena,
                         WorkerPool& pool,
                         const std::function<void(size_t done, size_t total)>& progress);

// Index of the first block (or element, for float types) whose values are not all finite. `blocks`
// is whole blocks of the type.
std::optional<uint64_t> FindNonFinite(DType type, std::span<const std::byte> blocks);

}  // namespace quire
