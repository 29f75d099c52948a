#include "server/rpc/validate_schedule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr size_t kMaxSaltBytes = 64;
constexpr uint32_t kLeastWindow = 64, kMostSinks = 256;
constexpr int32_t kDefaultSinks = 4;

}  // namespace

void ReadCacheOptions(const v1::CacheOptions& cache, ValidRequest* out, Violations* violations) {
  const std::string& salt = cache.salt();
  if (!(salt.size() <= kMaxSaltBytes && IsPrintable(salt))) {
    violations->Invalid("cache.salt", "wanted at most 64 printable ASCII characters");
  }
  out->cache_salt = salt;
  out->cache_bypass = cache.bypass();
}

void ReadKvPolicy(const v1::KvPolicy& policy, const RequestLimits& limits, ValidRequest* out,
                  Violations* violations) {
  if (policy.has_sink_tokens()) {
    if (!policy.has_window_tokens()) {
      violations->Conflict("kv_policy.sink_tokens", "only with kv_policy.window_tokens");
    } else if (!(policy.sink_tokens() <= kMostSinks)) {
      violations->Invalid("kv_policy.sink_tokens",
                          absl::StrCat("got ", policy.sink_tokens(), ", wanted 0..", kMostSinks));
    }
  }
  if (!policy.has_window_tokens()) return;
  const auto context = static_cast<uint32_t>(limits.context_tokens);
  if (!(policy.window_tokens() >= kLeastWindow && policy.window_tokens() <= context)) {
    violations->Invalid("kv_policy.window_tokens",
                        absl::StrCat("got ", policy.window_tokens(), ", wanted ", kLeastWindow,
                                     "..", limits.context_tokens));
    return;
  }
  if (!limits.kv_windows) violations->Unsupported("kv_policy.window_tokens");
  out->kv.window_tokens = static_cast<int32_t>(policy.window_tokens());
  out->kv.sink_tokens = policy.has_sink_tokens()
                            ? static_cast<int32_t>(std::min(policy.sink_tokens(), kMostSinks))
                            : kDefaultSinks;
}

void ReadPriority(const v1::GenerateRequest& request, const Caller& caller, ValidRequest* out,
                  Violations* violations) {
  out->priority = caller.priority.value_or(0);
  if (!request.has_priority()) return;
  if (!(request.priority() >= kLeastPriority && request.priority() <= kMostPriority)) {
    violations->Invalid("priority", absl::StrCat("got ", request.priority(), ", wanted ",
                                                 kLeastPriority, "..", kMostPriority));
  } else if (caller.priority.has_value() && *caller.priority != request.priority()) {
    violations->Conflict(
        "priority", absl::StrCat("got ", request.priority(), ", metadata x-quire-priority says ",
                                 *caller.priority));
  }
  out->priority = request.priority();
}

}  // namespace quire
