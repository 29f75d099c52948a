// What a call's metadata and deadline say, read once when it arrives. Plain value.
#pragma once

#include <grpcpp/server_context.h>

#include <string>

#include "runtime/base/clock.h"

namespace quire {

struct CallContext {
  MonotonicTime arrival{};
  MonotonicTime deadline = MonotonicTime::kInfinite;
  std::string request_id;  // metadata x-request-id; empty if absent
};

CallContext ReadCallContext(const grpc::ServerContext& context, const Clock& clock);

}  // namespace quire
