// `quire bench --baseline OTHER`: this build against another one in the same minutes, the only
// comparison that a noisy machine allows. Runs both as processes, in turns. One thread.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "server/cli/commands.h"

namespace quire {

struct BaselineOptions {
  std::string other;       // executable of another build
  double tolerance = 0.1;  // slower by more than this part in any case: a regression
  int32_t rounds = 3;      // of both builds; the median ratio of the rounds counts
};

struct BaselineVerdict {
  std::string json;    // the last result of this build, with "baseline" added
  double worst_ratio;  // speed of this build / the other's, of the worst case
};

// `bench_args` are the arguments of `quire bench` for both. FAILED_PRECONDITION if a process fails
// or prints no result, INVALID_ARGUMENT if the two results share no case.
absl::StatusOr<BaselineVerdict> CompareWithBaseline(const BaselineOptions& options,
                                                    const Args& bench_args);

}  // namespace quire
