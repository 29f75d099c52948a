// What a call's metadata and deadline say, read once when it arrives. Plain value.
#pragma once

#include <grpc/support/time.h>
#include <grpcpp/server_context.h>

#include <atomic>
#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "server/rpc/caller.h"

namespace quire {

struct CallContext {
  MonotonicTime arrival{};
  MonotonicTime deadline = MonotonicTime::kInfinite;
  std::string request_id;  // metadata x-request-id; empty if absent
  absl::StatusOr<Caller> caller = Caller{};
};

// What a handler that queues its work must know of its call. The flag outlives the call.
struct CallLife {
  MonotonicTime deadline = MonotonicTime::kInfinite;
  absl::StatusOr<Caller> caller = Caller{};
  std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
};

// A gRPC deadline on our clock, which shows `now`. Beyond all reason (the protocol can say 11000
// years): infinite.
MonotonicTime DeadlineOf(gpr_timespec deadline, MonotonicTime now);

CallContext ReadCallContext(const grpc::ServerContext& context, const Clock& clock);

}  // namespace quire
