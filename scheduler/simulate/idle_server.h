// What requests get from a server that has nothing else to do: the bound that no rate and no number
// of servers beats. Pure.
#pragma once

#include <cstddef>

#include "scheduler/simulate/simulation.h"

namespace quire {

// The first `most` arrivals of the trace one after the other, each alone on one server. Prefixes
// that came before may be in its cache.
SimulationResult SimulateIdle(const SimulationOptions& options, const CostModel& cost,
                              const Trace& trace, size_t most);

}  // namespace quire
