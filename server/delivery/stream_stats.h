// Plain numbers about streams, published by the delivery thread once per batch of events.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/base/histogram.h"

namespace quire {

enum class Outcome : uint8_t {
  kOk,
  kAborted,
  kCancelled,
  kDeadline,
  kExpired,
  kSlowReader,
  kShutdown,
  kError
};
inline constexpr std::array<std::string_view, 8> kOutcomeNames = {
    "ok", "aborted", "cancelled", "deadline", "expired", "slow_reader", "shutdown", "error"};

struct StreamStats {
  std::array<uint64_t, kOutcomeNames.size()> finished{};  // ended requests that had been accepted
  uint64_t prompt_tokens = 0,
           cached_prompt_tokens = 0;  // once per request, when its first token comes
  uint64_t generation_tokens = 0;     // completion and stop tokens
  uint64_t requests_with_token = 0, sequences_with_token = 0;
  uint64_t discarded_stop_lag = 0, discarded_ended = 0;  // drawn, never delivered
  int32_t open = 0;                                      // streams not ended, refused ones included
  int32_t paused = 0;
  uint64_t pauses = 0;
  int64_t buffered_bytes = 0;  // handed to sinks, not yet taken by the transport
  LatencyCounts time_to_first_token{kLatencyBounds};
  LatencyCounts inter_token{kInterTokenBounds}, time_per_output_token{kInterTokenBounds};
  LatencyCounts request{kDurationBounds}, intake{kDurationBounds}, queue{kDurationBounds},
      prefill{kDurationBounds}, decode{kDurationBounds};
  Histogram<kTokenBounds> prompt{}, generation{};
};

}  // namespace quire
