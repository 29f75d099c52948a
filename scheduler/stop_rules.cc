#include "scheduler/stop_rules.h"

#include <algorithm>

namespace quire {

FinishReason FinishAfter(const StopRules& rules, TokenId token, int32_t num_output) {
  // A stop wins over the length when both come true at one token.
  if (!rules.ignore_eos && std::ranges::find(rules.eos_ids, token) != rules.eos_ids.end()) {
    return FinishReason::kStop;
  }
  if (std::ranges::find(rules.stop_ids, token) != rules.stop_ids.end()) return FinishReason::kStop;
  return num_output >= rules.max_tokens ? FinishReason::kLength : FinishReason::kNone;
}

void AppendEnds(const StopRules& rules, std::vector<TokenId>& out) {
  out.insert(out.end(), rules.eos_ids.begin(), rules.eos_ids.end());
  out.insert(out.end(), rules.stop_ids.begin(), rules.stop_ids.end());
}

}  // namespace quire
