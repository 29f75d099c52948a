#include "server/rpc/call_context.h"

#include <chrono>

namespace quire {

CallContext ReadCallContext(const grpc::ServerContext& context, const Clock& clock) {
  CallContext out;
  out.arrival = clock.Now();
  const auto deadline = context.deadline();
  if (deadline != std::chrono::system_clock::time_point::max()) {
    // The wall clock is read once here; from now on only the monotonic one counts.
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
        deadline - std::chrono::system_clock::now());
    out.deadline = AddNanos(out.arrival, left.count());
  }
  const auto& metadata = context.client_metadata();
  if (const auto it = metadata.find("x-request-id"); it != metadata.end()) {
    out.request_id.assign(it->second.data(), it->second.size());
  }
  return out;
}

}  // namespace quire
