// What a client is told when a request fails, and under which outcome it is counted: one table.
// Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "scheduler/token_event.h"
#include "server/delivery/stream_stats.h"

namespace quire {

struct FailureFacts {
  FinishReason reason = FinishReason::kNone;
  SampleOutcome outcome = SampleOutcome::kToken;  // for kError
  std::string_view stage{};                       // "intake", "queue", "prefill", "decode"
  int64_t generated_tokens = 0;
  int64_t retry_delay_ms = 0;  // for ends that may be retried
};

// True for the reasons that a client sees as a Finished and an OK status.
bool EndsOk(FinishReason reason);
// The status of any other reason. After tokens were sent it is never OK.
absl::Status FailureStatus(const FailureFacts& facts);
Outcome OutcomeOf(FinishReason reason);
// "stop", "length", "time_limit", "aborted"; "" for reasons that are told as a status.
std::string_view EndName(FinishReason reason);

}  // namespace quire
