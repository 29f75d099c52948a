// A simulation as one SVG picture: the distributions of time to first token, time between tokens
// and time to the end, and queue, batch, KV cache and processor over time. Pure.
#pragma once

#include <string>

#include "scheduler/simulate/simulation.h"

namespace quire {

// `title` heads the picture, `subtitle` says what was simulated.
std::string ResultPlot(const SimulationResult& result, const std::string& title,
                       const std::string& subtitle);

}  // namespace quire
