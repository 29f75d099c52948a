// Makes a failing case small: operations are deleted while it still fails in the same way, then
// numbers are made plain. Each trial runs in a child process, so failed CHECKs can be shrunk too.
#pragma once

#include <functional>
#include <string>

#include "tests/property/sim/sim_case.h"

namespace quire::sim {

// "" if the case passes.
using Trial = std::function<std::string(const Case& c)>;

// Runs the case in a child; what RunCase finds, or how the child died.
std::string TryCase(const Case& c);

struct Shrunk {
  Case smallest;
  std::string problem;
  int32_t trials = 0;
};

// `trial` fails on c. Gives up after max_trials.
Shrunk Shrink(const Case& c, const Trial& trial, int32_t max_trials = 3000);

}  // namespace quire::sim
