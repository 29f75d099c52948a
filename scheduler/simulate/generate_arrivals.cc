#include "scheduler/simulate/generate_arrivals.h"

#include <algorithm>
#include <cmath>

#include "absl/log/check.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "scheduler/simulate/keyed_random.h"

namespace quire {
namespace {

enum Stream : uint64_t { kGap, kTenant, kPrompt, kPromptToo, kOutput, kOutputToo, kShares, kWhich };

size_t TenantOf(const std::vector<TenantTraffic>& tenants, double u) {
  double total = 0;
  for (const TenantTraffic& t : tenants) total += t.share;
  double reach = 0;
  for (size_t i = 0; i < tenants.size(); ++i) {
    reach += tenants[i].share;
    if (u * total < reach) return i;
  }
  return tenants.size() - 1;
}

}  // namespace

absl::StatusOr<Trace> GenerateArrivals(const ArrivalOptions& options) {
  CHECK(options.rate > 0 && options.seconds > 0 && options.max_total_tokens >= 2);
  if (!(options.rate * options.seconds <= kMaxGenerated)) {
    return absl::ResourceExhaustedError(absl::StrCat(options.rate, " requests per second for ",
                                                     options.seconds, " s are more than ",
                                                     kMaxGenerated, " requests"));
  }
  std::vector<TenantTraffic> tenants = options.tenants;
  if (tenants.empty()) tenants.push_back({.name = "default"});
  Trace trace;
  for (size_t t = 0; t < tenants.size(); ++t) {
    trace.tenants.push_back(tenants[t].name);
    for (int32_t p = 0; p < options.prefixes; ++p) {
      trace.prefixes.push_back(absl::StrCat(tenants[t].name.substr(0, 52), "-", p));
    }
  }
  double time = 0;
  for (uint64_t i = 0;; ++i) {
    const auto unit = [&](Stream stream) { return KeyedUnit(options.seed, stream, i); };
    time += -std::log1p(-unit(kGap)) / options.rate;
    if (time > options.seconds) break;
    const size_t tenant = TenantOf(tenants, unit(kTenant));
    Arrival a{.time_ns = std::llround(time * 1e9),
              .prompt_tokens = options.prompt_tokens.Draw(unit(kPrompt), unit(kPromptToo)),
              .output_tokens = options.output_tokens.Draw(unit(kOutput), unit(kOutputToo)),
              .tenant = static_cast<int32_t>(tenant),
              .priority = tenants[tenant].priority};
    const int32_t most = options.max_total_tokens;
    a.output_tokens = std::min(a.output_tokens, most - 1);
    if (options.prefixes > 0 && unit(kShares) < options.prefix_share) {
      a.prefix = static_cast<int32_t>(tenant) * options.prefixes +
                 static_cast<int32_t>(unit(kWhich) * options.prefixes);
      a.prefix_tokens = options.prefix_tokens;
      a.prompt_tokens =
          static_cast<int32_t>(std::min<int64_t>(int64_t{a.prompt_tokens} + a.prefix_tokens, most));
    }
    a.prompt_tokens = std::min(a.prompt_tokens, most - a.output_tokens);
    a.prefix_tokens = std::min(a.prefix_tokens, a.prompt_tokens);
    trace.arrivals.push_back(a);
  }
  return trace;
}

}  // namespace quire
