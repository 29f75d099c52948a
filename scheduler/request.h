// An accepted unit of work as the scheduler sees it. Immutable after Scheduler::Add, which takes
// ownership until the last of its sequences has finished.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/sampling/sampling_params.h"

namespace quire {

// Token-level ends. Text-level ones (stop strings) are found by delivery, which then aborts the
// request.
struct StopRules {
  int32_t max_tokens = 0;  // >= 1, already cut to context and pool
  int32_t min_tokens = 0;  // eos_ids and stop_ids are not drawn before this many tokens
  bool ignore_eos = false;
  std::vector<TokenId> eos_ids;   // the model's end tokens
  std::vector<TokenId> stop_ids;  // the client's
};

// Whatever besides tokens changes KV contents; set by the server, compared by the prefix index
// only.
struct CacheDomain {
  uint64_t hi = 0, lo = 0;
  friend bool operator==(const CacheDomain&, const CacheDomain&) = default;
};

struct Request {
  RequestId id = RequestId::kNone;
  std::vector<TokenId> prompt;  // >= 1 token
  SamplingParams sampling;
  StopRules stop;
  int32_t num_sequences = 1;
  int32_t priority = 0;
  int32_t tenant = 0;
  MonotonicTime arrival{};
  MonotonicTime deadline = MonotonicTime::kInfinite;  // ends it with kDeadline
  // Ends it with kTimeLimit; the earlier of the two names the reason.
  MonotonicTime time_limit = MonotonicTime::kInfinite;
  CacheDomain cache_domain;
};

}  // namespace quire
