// When a refused client should come back: the time to prefill what waits, within bounds, spread by
// jitter. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace quire {

inline constexpr double kMinRetryMs = 50, kMaxRetryMs = 30'000;

// `unit` in [0, 1) places the delay within 25 % around the estimate. A rate of 0: not measured yet.
constexpr int64_t RetryDelayMs(int64_t waiting_tokens, double tokens_per_second, double unit) {
  const double ms = tokens_per_second > 0
                        ? 1e3 * static_cast<double>(waiting_tokens) / tokens_per_second
                        : 1000.0;
  const double spread = std::clamp(ms, kMinRetryMs, kMaxRetryMs) * (0.75 + 0.5 * unit);
  return static_cast<int64_t>(std::clamp(spread, kMinRetryMs, kMaxRetryMs));
}

}  // namespace quire
