// Runs drawn cases one after the other; the body of the simulation test and of the planted bugs.
#pragma once

#include <cstdint>

#include "tests/property/sim/isolate.h"
#include "tests/property/sim/shadow.h"

namespace quire::sim {

struct SeedRange {
  uint64_t first = 1, stride = 1;
  uint64_t max_seeds = UINT64_MAX;
  int64_t steps = INT64_MAX;  // stops when so many have been done
};

// progress.seed is the seed at hand; stops at the first problem. Some seeds are run twice (S9: the
// same decisions), some are dropped in the middle (L7). `notes` receives the Coverage.
void RunSeeds(const SeedRange& range, Progress& progress);

Coverage CoverageOf(const Progress& progress);

}  // namespace quire::sim
