// How tokens of one request are drawn. A validated value: every field is in range. Any thread.
#pragma once

#include <cstdint>

namespace quire {

inline constexpr int32_t kMaxTopLogprobs = 20;

struct SamplingParams {
  float temperature = 1.0f;  // 0 and anything below 1e-4: greedy, ties to the lowest id
  int32_t top_k = 0;         // 0 = off
  float top_p = 1.0f;        // 1 = off
  float min_p = 0.0f;        // 0 = off
  uint64_t seed = 0;         // random stream; drawn by the server if the client gave none
  bool logprobs = false;     // logprob and rank of the drawn token
  int32_t top_logprobs = 0;  // alternatives per token, 0..kMaxTopLogprobs

  bool greedy() const { return temperature < 1e-4f; }
};

}  // namespace quire
