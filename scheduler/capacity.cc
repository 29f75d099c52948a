#include "scheduler/capacity.h"

#include <algorithm>

#include "runtime/base/ids.h"
#include "scheduler/kv_window.h"

namespace quire {

Capacity CapacityOf(int64_t prompt_tokens, const CapacityLimits& limits, const KvPolicy& kv) {
  const int64_t context = limits.context_tokens;
  const bool window_fits = WindowBlocks(kv) <= limits.num_blocks;
  const int64_t pool = window_fits ? context : int64_t{limits.num_blocks} * kBlockTokens;
  Capacity capacity;
  capacity.pool_bound = pool < context;
  capacity.limit_tokens = static_cast<int32_t>(std::min(pool, context));
  if (prompt_tokens >= capacity.limit_tokens) {
    capacity.verdict = capacity.pool_bound ? CapacityVerdict::kPromptBeyondPool
                                           : CapacityVerdict::kPromptBeyondContext;
    return capacity;
  }
  capacity.max_new_tokens = static_cast<int32_t>(capacity.limit_tokens - prompt_tokens);
  return capacity;
}

}  // namespace quire
