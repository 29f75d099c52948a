// Where the output of one request goes. Implemented by the gRPC call (and by fakes in tests). All
// calls come from the delivery thread, in order, and end with exactly one End. Implementations
// never block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/ids.h"
#include "scheduler/token_event.h"

namespace quire {

struct OutCandidate {
  TokenId id;
  std::string piece;
  float logprob;
};

struct OutToken {
  TokenId id = TokenId::kNone;
  std::string piece;  // bytes it adds to the text
  std::optional<float> logprob{};
  std::optional<int32_t> rank{};
  std::vector<OutCandidate> top{};         // likeliest first
  std::optional<int32_t> visible_bytes{};  // set when a stop cut this piece
};

// text is exactly the visible bytes of tokens (whole code points). Empty parts were not asked for.
struct OutDelta {
  int32_t output_index = 0;
  std::string text;
  std::vector<OutToken> tokens;
};

enum class MatchedStop : uint8_t { kNone, kEos, kStopToken, kStopString };

struct OutTiming {
  int64_t intake_us = 0, queue_us = 0, prefill_us = 0, decode_us = 0;
  int32_t preemptions = 0;
};

struct OutUsage {
  int32_t prompt_tokens = 0, cached_prompt_tokens = 0, completion_tokens = 0, stop_tokens = 0;
};

struct OutFinished {
  int32_t output_index = 0;
  FinishReason reason = FinishReason::kNone;  // kStop, kLength, kTimeLimit or kAborted
  LengthBound length_bound = LengthBound::kNone;
  MatchedStop matched = MatchedStop::kNone;
  uint32_t matched_value = 0;  // token id, or index in stop_strings
  uint64_t seed = 0;
  OutTiming timing{};
  std::optional<OutUsage> usage{};  // on the last Finished of the request
};

class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  virtual void OnDelta(OutDelta delta) = 0;
  virtual void OnFinished(OutFinished finished) = 0;
  virtual void OnEnd(
      absl::Status status) = 0;  // last call; OK after the last OnFinished, else why it failed
  virtual int64_t BufferedBytes()
      const = 0;  // handed over, not yet taken by the transport; any thread
};

}  // namespace quire
