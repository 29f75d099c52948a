// What the server will hold in memory, against what it may: weights + KV pool + scratch + reserve
// against the cgroup's or the machine's limit. Pure arithmetic, printed at start. Any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/ids.h"

namespace quire {

struct ResourceNeeds {
  int64_t weights_bytes = 0;
  int64_t scratch_bytes = 0;   // activations, logits, per-worker scratch
  int64_t kv_block_bytes = 0;  // one block of kBlockTokens tokens, all layers, K and V
  int32_t context_tokens = 0;  // of the model
  int32_t max_context = 0;     // lower by configuration; 0 = the model's
  int64_t kv_cache_bytes = 0;  // asked for; 0 = choose
  int64_t limit_bytes = 0;     // of the cgroup or RAM
  std::string limit_source{};  // "cgroup memory.max" or "RAM", for the printed line
};

inline constexpr int64_t kReserveBytes = int64_t{256} << 20;  // text, streams, libraries
inline constexpr int64_t kDefaultKvBytes = int64_t{2} << 30;

struct ResourcePlan {
  int32_t num_blocks = 0;
  int64_t kv_bytes = 0;
  int64_t total_bytes = 0;     // weights + KV + scratch + reserve
  int32_t context_tokens = 0;  // min(model, max_context); the pool is a bound of its own
  std::string text;            // the arithmetic, a few lines

  int32_t effective_context_tokens() const {
    return static_cast<int32_t>(
        std::min<int64_t>(context_tokens, int64_t{num_blocks} * kBlockTokens));
  }
};

// FAILED_PRECONDITION with the arithmetic if it does not fit (exit 78).
absl::StatusOr<ResourcePlan> PlanResources(const ResourceNeeds& needs);

}  // namespace quire
