#include "scheduler/capacity.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"
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

absl::Status PromptTooLong(int64_t prompt_tokens, const Capacity& capacity,
                           const CapacityLimits& limits, bool counted) {
  std::string message;
  ErrorInfo info;
  if (capacity.verdict == CapacityVerdict::kPromptBeyondPool) {
    const int64_t needed =
        BlocksFor(static_cast<int32_t>(std::min<int64_t>(prompt_tokens + 1, INT32_MAX)));
    message = absl::StrCat("prompt of ", prompt_tokens, " tokens needs ", needed,
                           " KV blocks, the pool has ", limits.num_blocks);
    info.reason = "KV_POOL_TOO_SMALL";
    info.metadata = {{"needed_blocks", absl::StrCat(needed)},
                     {"total_blocks", absl::StrCat(limits.num_blocks)}};
  } else {
    message =
        absl::StrCat("prompt of ", counted ? "" : "at least ", prompt_tokens,
                     " tokens and one more do not fit the context of ", limits.context_tokens);
    info.reason = "PROMPT_TOO_LONG";
    info.metadata = {{"actual", absl::StrCat(prompt_tokens)},
                     {"limit", absl::StrCat(limits.context_tokens - 1)}};
  }
  info.violations = {{"prompt", message}};
  return MakeError(absl::StatusCode::kInvalidArgument, message, info);
}

}  // namespace quire
