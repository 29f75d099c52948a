// When a refused client should come back: when what waits has been prefilled and a place is free,
// at the measured rates, within bounds, spread by jitter. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "scheduler/service_estimate.h"

namespace quire {

inline constexpr double kMinRetryMs = 50, kMaxRetryMs = 30'000;

// `unit` in [0, 1) places the delay within 25 % around the estimate. No rate of prompts: 1 s.
constexpr int64_t RetryDelayMs(int64_t waiting_tokens, const ServiceRates& rates, double unit) {
  const double prompts =
      rates.prefill_tokens_per_second > 0
          ? 1e3 * static_cast<double>(waiting_tokens) / rates.prefill_tokens_per_second
          : 1000.0;
  const double place = rates.ends_per_second > 0 ? 1e3 / rates.ends_per_second : 0;
  const double ms = std::max(prompts, place);
  const double spread = std::clamp(ms, kMinRetryMs, kMaxRetryMs) * (0.75 + 0.5 * unit);
  return static_cast<int64_t>(std::clamp(spread, kMinRetryMs, kMaxRetryMs));
}

}  // namespace quire
