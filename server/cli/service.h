// The composition root: makes the rooms, connects them, and takes them down in order. Listen binds
// every port and answers LOADING; Load brings the model to life and serves; Drain ends it. Main
// thread only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/server_config.h"
#include "server/rpc/rpc_server.h"

namespace quire {

class Service {
 public:
  using Progress = std::function<void(size_t done_bytes, size_t total_bytes)>;

  // UNAVAILABLE if an address cannot be bound (exit 69).
  static absl::StatusOr<std::unique_ptr<Service>> Listen(const ServerConfig& config);
  ~Service();  // without grace

  // FAILED_PRECONDITION for the model file or the resource plan (exit 78).
  absl::Status Load(Progress progress);
  // NOT_SERVING at once, new requests for `drain_delay` more, then running ones finish within
  // `drain_timeout`.
  void Drain();
  // For an exit that does not wait: ends what is live and writes its lines of the log, within some
  // seconds. After Load; any thread, also during Drain.
  void EndAtOnce();

  // Judges the age of the engine's pulse and sets the health. Call about once a second.
  // False: the engine is given up for dead.
  bool CheckPulse();

  const std::vector<std::string>& grpc_addresses() const;
  int http_port() const;         // 0: off
  std::string Describe() const;  // what is loaded and the resource plan, a few lines

 private:
  struct State;
  explicit Service(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quire
