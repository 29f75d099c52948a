// The identities that tie what was received to what was accepted, computed and ended. They hold at
// every moment, so on every scrape, and a server that is idle checks them for its health. Pure.
#pragma once

#include "absl/status/status.h"
#include "server/delivery/stream_stats.h"
#include "server/engine/step_stats.h"

namespace quire {

// One snapshot each, loaded in this order (what has ended first).
struct Books {
  StreamStats streams{};
  StepStats steps{};
  IntakeStats intake{};
};

uint64_t FinishedRequests(const StreamStats& streams);

// INTERNAL: the first identity that fails, with both sides.
//   received = accepted + rejected + in intake (>= 0)      accepted = finished + live (>= 0)
//   sequences started = finished + running + waiting       free + cached + used blocks = all
//   computed tokens = tokens of the steps                  found <= looked up in the prefix cache
//   gaps between tokens = tokens - sequences with a token  first tokens = requests with a token
//   durations = finished requests                          cached prompt tokens <= found
absl::Status CheckBooks(const Books& books);

}  // namespace quire
