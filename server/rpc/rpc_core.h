// What every call needs from the server around it: state, the loaded backend, the cap on calls, the
// register of live ids, counters. Owned by the RpcServer. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "server/rpc/backend.h"
#include "server/rpc/health.h"
#include "server/rpc/live_requests.h"
#include "server/rpc/rpc_stats.h"

namespace quire {

// What GetServerInfo tells besides the backend.
struct ServerIdentity {
  std::string version, revision, instance_id;
  MonotonicTime started{};
};

struct RpcCore {
  RpcCore(ServerIdentity who, const Clock* time, std::vector<std::string> services)
      : identity(std::move(who)), clock(time), health(std::move(services)) {}

  const ServerIdentity identity;
  const Clock* const clock;
  int32_t max_calls = 0;  // set before the first call, as the next one
  int64_t slow_reader_ms = 0;
  Health health;
  LiveRequests live;
  RpcStats stats;
  std::atomic<int32_t> calls{0};                 // in flight, health and reflection excepted
  std::atomic<const Backend*> backend{nullptr};  // null while loading

  // The backend, or UNAVAILABLE LOADING, STALLED or FAULTY. Draining is the intake's to refuse.
  absl::StatusOr<const Backend*> Ready() const;
};

// Counts one call in flight for as long as it lives.
class CallSlot {
 public:
  explicit CallSlot(RpcCore& core)
      : core_(core), taken_(core.calls.fetch_add(1) < core.max_calls) {}
  ~CallSlot() { core_.calls.fetch_sub(1); }
  CallSlot(const CallSlot&) = delete;
  CallSlot& operator=(const CallSlot&) = delete;
  // RESOURCE_EXHAUSTED CALLS_FULL beyond the cap.
  absl::Status status() const;

 private:
  RpcCore& core_;
  const bool taken_;
};

// UNAVAILABLE with a reason and a retry delay.
absl::Status Unavailable(const std::string& reason, const std::string& message);

// UNIMPLEMENTED METHOD_UNSUPPORTED: a method of the API that this build lacks.
absl::Status MethodUnsupported(RpcMethod method);

}  // namespace quire
