#include "server/config/resource_plan.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/ids.h"

namespace quire {
namespace {

std::string MiB(int64_t bytes) {
  return absl::StrFormat("%.1f MiB",
                         static_cast<double>(bytes) / static_cast<double>(int64_t{1} << 20));
}

int64_t BlocksIn(int64_t bytes, int64_t block_bytes) {
  return std::min<int64_t>(bytes / block_bytes, std::numeric_limits<int32_t>::max() / kBlockTokens);
}

// min(what is left, 2 GiB), and never less than one context if that fits.
int64_t DefaultKvBytes(int64_t left, int64_t context_bytes) {
  const int64_t chosen = std::min(left, kDefaultKvBytes);
  return chosen < context_bytes && context_bytes <= left ? context_bytes : chosen;
}

}  // namespace

absl::StatusOr<ResourcePlan> PlanResources(const ResourceNeeds& needs) {
  const int64_t block = needs.kv_block_bytes;
  if (!(block > 0 && needs.weights_bytes >= 0 && needs.scratch_bytes >= 0 &&
        needs.context_tokens > 0)) {
    return absl::FailedPreconditionError("resource plan: the model has no shape");
  }
  const int32_t context = needs.max_context > 0 ? std::min(needs.max_context, needs.context_tokens)
                                                : needs.context_tokens;
  if (context < 2) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a context of ", context,
        " token holds no prompt and no answer; --max-context: wanted 0 or at least 2"));
  }
  const int64_t context_bytes = BlocksFor(context) * block;
  const int64_t fixed = needs.weights_bytes + needs.scratch_bytes + kReserveBytes;
  const int64_t left = std::max<int64_t>(needs.limit_bytes - fixed, 0);
  const bool asked = needs.kv_cache_bytes > 0;
  const int64_t wanted = asked ? needs.kv_cache_bytes : DefaultKvBytes(left, context_bytes);
  const int64_t blocks = BlocksIn(wanted, block);

  ResourcePlan plan;
  plan.num_blocks = static_cast<int32_t>(blocks);
  plan.kv_bytes = blocks * block;
  plan.total_bytes = fixed + plan.kv_bytes;
  plan.context_tokens = context;
  plan.text = absl::StrCat("memory: weights ", MiB(needs.weights_bytes), " + KV cache ",
                           MiB(plan.kv_bytes), " (", blocks, " blocks of ", kBlockTokens,
                           " tokens, ", MiB(block), " each) + scratch ", MiB(needs.scratch_bytes),
                           " + reserve ", MiB(kReserveBytes), " = ", MiB(plan.total_bytes), " of ",
                           MiB(needs.limit_bytes), " (", needs.limit_source, ")\n",
                           "context: ", plan.effective_context_tokens(), " tokens (model ",
                           needs.context_tokens, ", pool ", blocks * kBlockTokens, ")\n");
  if (blocks < 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(plan.text, asked ? "--kv-cache-bytes is" : "what is left for the KV cache is",
                     " less than one block of ", block, " bytes: give the process more memory",
                     asked ? " to the KV cache" : ", or take a smaller model"));
  }
  if (plan.total_bytes > needs.limit_bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(plan.text, "this does not fit: over the limit by ",
                     MiB(plan.total_bytes - needs.limit_bytes), "; lower --kv-cache-bytes (",
                     needs.kv_cache_bytes, ") to at most ", left, " or raise the limit"));
  }
  return plan;
}

}  // namespace quire
