// The one function that says what fits: used at start-up, at intake and by Scheduler::Add. Pure.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "scheduler/request.h"

namespace quire {

struct CapacityLimits {
  int32_t context_tokens = 0;  // of the model, or lower by configuration
  int32_t num_blocks = 0;      // of the KV pool
};

enum class CapacityVerdict : uint8_t { kFits, kPromptBeyondContext, kPromptBeyondPool };

struct Capacity {
  CapacityVerdict verdict = CapacityVerdict::kFits;
  int32_t max_new_tokens = 0;  // most tokens an output of this prompt can have; >= 1 if it fits
  bool pool_bound = false;     // the pool, not the context, is what bounds max_new_tokens
  int32_t limit_tokens = 0;    // what prompt + 1 was compared with: context, or tokens of the pool
};

// prompt_tokens >= 1. With a window that fits the pool, the context alone bounds. A prompt needs
// room for itself and one token: prompt + 1 <= min(context, pool).
Capacity CapacityOf(int64_t prompt_tokens, const CapacityLimits& limits, const KvPolicy& kv = {});

// kInvalidArgument with both numbers, for a prompt that does not fit; not counted to its end: it
// has at least so many tokens.
absl::Status PromptTooLong(int64_t prompt_tokens, const Capacity& capacity,
                           const CapacityLimits& limits, bool counted = true);

}  // namespace quire
