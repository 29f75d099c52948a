// A request of a trace as the scheduler takes it: made-up token ids that are equal exactly where
// the trace says that prompts share a prefix, and the number of output tokens as its only end.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scheduler/request.h"
#include "scheduler/simulate/trace.h"

namespace quire {

// Ids count from 1 in order of arrival.
inline RequestId TraceRequestId(size_t arrival) { return RequestId{arrival + 1}; }
inline size_t ArrivalOf(RequestId id) { return static_cast<size_t>(id) - 1; }

// Token ids are below vocab_size; times count from `start`.
Request RequestOf(const Trace& trace, size_t arrival, int32_t vocab_size, MonotonicTime start = {});

}  // namespace quire
