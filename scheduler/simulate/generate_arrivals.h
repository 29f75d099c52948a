// Made-up traffic: Poisson arrivals with lengths, tenants and shared prefixes drawn by a seed.
// Pure: the same options give the same trace, and another rate only stretches its times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/simulate/length_distribution.h"
#include "scheduler/simulate/trace.h"

namespace quire {

struct TenantTraffic {
  std::string name;
  double share = 1;  // of the requests, relative to the others'
  int32_t priority = 0;
};

struct ArrivalOptions {
  double rate = 1;       // requests per second
  double seconds = 300;  // no arrival after this
  uint64_t seed = 1;
  LengthDistribution prompt_tokens, output_tokens;
  int32_t max_total_tokens = 1 << 20;  // prompts are cut so that prompt and output fit
  std::vector<TenantTraffic> tenants;  // empty: one, "default"
  int32_t prefixes = 0;                // how many each tenant has; 0 = none
  int32_t prefix_tokens = 0;           // of each, in front of the drawn prompt
  double prefix_share = 1;             // part of the requests that begin with one
};

// The most requests that rate times seconds may come to.
inline constexpr double kMaxGenerated = 5e6;

// RESOURCE_EXHAUSTED above kMaxGenerated; a trace without arrivals if none came in time.
absl::StatusOr<Trace> GenerateArrivals(const ArrivalOptions& options);

}  // namespace quire
