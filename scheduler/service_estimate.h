// How long a request that came now would take, from what waits before it and the rates measured of
// late: for retry delays and for refusing early what cannot make its deadline. Pure; any thread.
#pragma once

#include <cstdint>

namespace quire {

// Measured over recent steps; 0 = not known yet.
struct ServiceRates {
  double prefill_tokens_per_second = 0;  // while prompts are computed, decodes beside them
  double steps_per_second = 0;           // steps with decodes: tokens per second of one sequence
  double ends_per_second = 0;            // sequences that end: how fast places become free
};

// What is before the request. Priorities and shares may change its place: this is by arrival.
struct ServiceLoad {
  int64_t tokens_ahead = 0;   // uncomputed prompt tokens, waiting and running
  int32_t waiting_ahead = 0;  // sequences
  int32_t free_places = 0;    // sequences that the batch could take now
};

struct ServiceEstimate {
  bool known = false;                      // false: no rates yet, and the times are 0
  int64_t first_token_ns = 0, end_ns = 0;  // from now; end: after output_tokens tokens
};

// prompt_tokens, output_tokens >= 1. An estimate, not a bound: blocks may run out before places.
ServiceEstimate EstimateService(const ServiceLoad& load, const ServiceRates& rates,
                                int64_t prompt_tokens, int64_t output_tokens);

}  // namespace quire
