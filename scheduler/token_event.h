// What a step produced for a sequence: a token, an end, or both. Plain value, copied to delivery.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/sampling/sample_spec.h"

namespace quire {

enum class FinishReason : uint8_t {
  kNone,
  kStop,
  kLength,
  kTimeLimit,
  kAborted,
  kDeadline,
  kQueueAge,
  kCancelled,
  kSlowReader,
  kShutdown,
  kError
};

enum class LengthBound : uint8_t { kNone, kRequest, kDefault, kContext, kPool };

// Exactly one event with finish != kNone per sequence, its last. A finish event may carry the last
// token: for kStop the drawn EOS or stop id, for kLength the last token of the output.
struct TokenEvent {
  SequenceId sequence;
  TokenId token = TokenId::kNone;  // kNone: an end without a token
  float logprob = 0;
  int32_t rank = 0;
  int32_t top_count = 0;
  std::array<TopLogprob, kMaxTopLogprobs> top;
  FinishReason finish = FinishReason::kNone;
  SampleOutcome outcome = SampleOutcome::kToken;  // why, for kError
  int32_t preemptions = 0;                        // so far; of the finish event
  int32_t cached_prompt_tokens = 0;               // found in the prefix cache; of the finish event
  MonotonicTime first_scheduled{};  // when it left the queue; of the finish event, 0 if never
};

}  // namespace quire
