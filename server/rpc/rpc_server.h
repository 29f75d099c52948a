// The gRPC face: listeners, pollers and the services on them. It listens before the model is loaded
// and answers UNAVAILABLE LOADING until Attach. Start, Attach and Shutdown: main thread. Flush: any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/rpc/rpc_core.h"

namespace quire {

struct RpcServerOptions {
  std::vector<std::string> listen;  // "host:port" (port 0: any) or "unix:PATH"
  ServerIdentity identity;
  const Clock* clock = nullptr;  // outlives the server
  int32_t max_calls = 384;
  int64_t receive_message_bytes = 4 << 20;
  int32_t metadata_bytes = 16 << 10;
  int64_t max_request_ms = 600'000;  // grace of a connection past its age
  // A client that takes nothing of an ended request for so long is cut off.
  int64_t slow_reader_ms = 30'000;
  bool reflection = false;
  int32_t pollers = 2;
};

class RpcServer {
 public:
  // UNAVAILABLE if an address cannot be bound.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(RpcServerOptions options);
  ~RpcServer();  // Shutdown without grace

  // From now on requests are taken. `backend` outlives the server's Shutdown.
  void Attach(const Backend* backend);
  // Wakes calls whose sinks have news: delivery's flush callback.
  void Flush();
  // Closes the listeners, waits for calls up to `grace`, cancels the rest. All requests must be on
  // their way to their end (DrainRequests), with delivery still running. Idempotent.
  void Shutdown(absl::Duration grace);

  Health& health();
  const RpcStats& stats() const;
  const std::vector<std::string>& addresses() const;  // as given, with the ports that were bound

 private:
  struct State;
  explicit RpcServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quire
