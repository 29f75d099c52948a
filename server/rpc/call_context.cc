#include "server/rpc/call_context.h"

#include <algorithm>

namespace quire {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr int64_t kForeverSeconds = INT64_MAX / kNanosPerSecond / 2;

}  // namespace

MonotonicTime DeadlineOf(gpr_timespec deadline, MonotonicTime now) {
  // gRPC's own clock is read once here; from now on only ours counts.
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec >= kForeverSeconds) return MonotonicTime::kInfinite;
  return AddNanos(now, std::max<int64_t>(left.tv_sec, -1) * kNanosPerSecond + left.tv_nsec);
}

CallContext ReadCallContext(const grpc::ServerContext& context, const Clock& clock) {
  CallContext out;
  out.arrival = clock.Now();
  out.deadline = DeadlineOf(context.raw_deadline(), out.arrival);
  const auto& metadata = context.client_metadata();
  out.caller = ReadCaller(metadata);
  if (const auto it = metadata.find("x-request-id"); it != metadata.end()) {
    out.request_id.assign(it->second.data(), it->second.size());
  }
  return out;
}

}  // namespace quire
