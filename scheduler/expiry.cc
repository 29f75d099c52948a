#include "scheduler/expiry.h"

namespace quire {

Expiry ExpiryOf(const Request& request, bool started, int64_t max_queue_ns) {
  Expiry first;
  const auto consider = [&first](MonotonicTime time, FinishReason reason) {
    if (time < first.time) first = {time, reason};
  };
  consider(request.time_limit, FinishReason::kTimeLimit);
  consider(request.deadline, FinishReason::kDeadline);
  if (!started) consider(AddNanos(request.arrival, max_queue_ns), FinishReason::kQueueAge);
  return first;
}

}  // namespace quire
