#include "scheduler/service_estimate.h"

#include <algorithm>

namespace quire {
namespace {

// A century: keeps sums of estimates far from overflow.
constexpr double kMostSeconds = 3e9;

int64_t ToNanos(double seconds) {
  return static_cast<int64_t>(std::clamp(seconds, 0.0, kMostSeconds) * 1e9);
}

}  // namespace

ServiceEstimate EstimateService(const ServiceLoad& load, const ServiceRates& rates,
                                int64_t prompt_tokens, int64_t output_tokens) {
  if (!(rates.prefill_tokens_per_second > 0)) return {};
  const double own = static_cast<double>(prompt_tokens) / rates.prefill_tokens_per_second;
  const double prompts = static_cast<double>(load.tokens_ahead) / rates.prefill_tokens_per_second;
  const int64_t lacking = int64_t{load.waiting_ahead} + 1 - load.free_places;
  // Places become free while the prompts ahead are computed: the slower of the two counts.
  const double places = lacking > 0 && rates.ends_per_second > 0
                            ? static_cast<double>(lacking) / rates.ends_per_second
                            : 0;
  const double step = rates.steps_per_second > 0 ? 1 / rates.steps_per_second : 0;
  const double first = std::max(prompts, places) + own;
  const double end = first + step * static_cast<double>(output_tokens - 1);
  return {.known = true, .first_token_ns = ToNanos(first), .end_ns = ToNanos(end)};
}

}  // namespace quire
