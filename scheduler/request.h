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

// Which earlier tokens a row attends to. Part of what a cached block must agree on: below the first
// layer the values of a token depend on what its predecessors saw.
struct KvPolicy {
  int32_t window_tokens = 0;  // its own and the tokens before it; 0 = all earlier tokens
  int32_t sink_tokens = 0;    // the first tokens of the sequence, seen by all; with a window only
  friend bool operator==(const KvPolicy&, const KvPolicy&) = default;
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
  KvPolicy kv;
  bool cache_bypass = false;  // finds nothing in the prefix cache and leaves nothing there
};

}  // namespace quire
