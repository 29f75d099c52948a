// When time ends a sequence, and with which reason: a pure function.
#pragma once

#include <cstdint>

#include "runtime/base/clock.h"
#include "scheduler/request.h"
#include "scheduler/token_event.h"

namespace quire {

struct Expiry {
  MonotonicTime time = MonotonicTime::kInfinite;
  FinishReason reason = FinishReason::kNone;
};

// The earliest of time limit, deadline and, before it has started, queue age; the earlier in this
// list on a tie, since a time limit still hands over the text so far.
Expiry ExpiryOf(const Request& request, bool started, int64_t max_queue_ns);

}  // namespace quire
