// The result of a simulation, or of a real run of the same trace, as text for a terminal. Pure.
#pragma once

#include <span>
#include <string>

#include "scheduler/simulate/request_book.h"
#include "scheduler/simulate/simulation.h"

namespace quire {

// Counts, throughput and percentiles: a line for all and one for each tenant if there are several.
// `seconds`: what throughput is divided by.
std::string LatencyTable(std::span<const GroupTotals> groups, double seconds);

// Utilisation, steps, preemptions, KV use.
std::string ReplicaTable(const SimulationResult& result);

}  // namespace quire
