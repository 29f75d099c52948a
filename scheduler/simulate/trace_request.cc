#include "scheduler/simulate/trace_request.h"

#include "scheduler/simulate/keyed_random.h"

namespace quire {
namespace {

enum Stream : uint64_t { kPrefixToken, kOwnToken };

}  // namespace

Request RequestOf(const Trace& trace, size_t arrival, int32_t vocab_size, MonotonicTime start) {
  const Arrival& a = trace.arrivals[arrival];
  Request request;
  request.id = TraceRequestId(arrival);
  request.prompt.reserve(static_cast<size_t>(a.prompt_tokens));
  for (int32_t i = 0; i < a.prompt_tokens; ++i) {
    const uint64_t bits =
        i < a.prefix_tokens
            ? KeyedBits(kPrefixToken, static_cast<uint64_t>(a.prefix), static_cast<uint64_t>(i))
            : KeyedBits(kOwnToken, arrival, static_cast<uint64_t>(i));
    request.prompt.push_back(
        TokenId{static_cast<int32_t>(bits % static_cast<uint64_t>(vocab_size))});
  }
  request.sampling.temperature = 0;
  request.stop.max_tokens = a.output_tokens;
  request.stop.ignore_eos = true;
  request.priority = a.priority;
  request.tenant = a.tenant;
  // Nothing is shared between tenants.
  request.cache_domain.lo = static_cast<uint64_t>(a.tenant);
  request.arrival = AddNanos(start, a.time_ns);
  return request;
}

}  // namespace quire
