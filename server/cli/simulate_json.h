// What `quire simulate --json` prints, and what a real run of the same trace prints for comparison.
// Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "scheduler/simulate/simulation.h"

namespace quire {

// {"name", counts, "ttft_ms", "itl_ms", "e2e_ms": {"mean", "p50", "p90", "p99", "max"}} of each.
nlohmann::ordered_json GroupsJson(std::span<const GroupTotals> groups);

// One object with the groups under "all" and "tenants".
nlohmann::ordered_json SimulationJson(const SimulationResult& result);

}  // namespace quire
