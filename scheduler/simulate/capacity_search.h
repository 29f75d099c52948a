// Searches behind "how much traffic can this take" and "how many replicas does it take", and a
// trace at another speed for them. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "scheduler/simulate/trace.h"

namespace quire {

// The largest value that passes, if small ones pass and large ones do not: from `start` by doubling
// or halving, then bisection until the bounds are within 1%. Returns 0 if not even start / 1024
// passes, and the last tried if start * 1024 does.
double LargestPassing(double start, const std::function<bool(double)>& passes);

// The least of 1..most that passes, if more is better; nothing if `most` does not pass.
std::optional<int32_t> LeastPassing(int32_t most, const std::function<bool(int32_t)>& passes);

// The trace with its arrivals `factor` times as fast, repeated until it lasts as long as before:
// what a queue does to latency shows only after a while. factor > 0.
Trace AtSpeed(const Trace& trace, double factor);

}  // namespace quire
