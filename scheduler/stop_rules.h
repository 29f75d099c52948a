// Token-level ends of a sequence: pure functions. Text-level ends are delivery's.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/ids.h"
#include "scheduler/request.h"
#include "scheduler/token_event.h"

namespace quire {

// Whether `token`, drawn as output number num_output (1 = first), ends the sequence, and why.
FinishReason FinishAfter(const StopRules& rules, TokenId token, int32_t num_output);

// Whether ends are still masked when num_output tokens have been drawn.
inline bool EndsAreBanned(const StopRules& rules, int32_t num_output) {
  return num_output < rules.min_tokens;
}

// Appends every token that may not be drawn while ends are banned.
void AppendEnds(const StopRules& rules, std::vector<TokenId>& out);

}  // namespace quire
