// The state of the server, and what grpc.health.v1 says about it: "" and every exposed service are
// SERVING in state READY only; "quire.live" is SERVING until the watchdog gives up, through loading
// and draining, so that a liveness probe restarts nothing. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/rpc/call_task.h"

namespace quire {

enum class ServerState : uint8_t { kLoading, kReady, kDraining, kStalled, kFaulty };

inline constexpr char kLiveService[] = "quire.live";

class Health {
 public:
  explicit Health(std::vector<std::string> services) : services_(std::move(services)) {}

  ServerState state() const;
  bool live() const;
  void SetState(ServerState state);  // wakes every watcher
  void GiveUp();                     // the watchdog's last word: no longer live
  void Close();                      // the server stops: watchers end

  // Whether `service` serves; nothing: there is no such service.
  std::optional<bool> Serving(const std::string& service) const;
  const std::vector<std::string>& services() const { return services_; }

  // A watcher's signal is raised at each change until it is removed. closed(): watchers must end.
  void AddWatcher(Poller* poller, std::shared_ptr<Signal> signal);
  void RemoveWatcher(const Signal* signal);
  bool closed() const;

 private:
  struct Watcher {
    Poller* poller;
    std::shared_ptr<Signal> signal;
  };
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<std::string> services_;
  mutable absl::Mutex mutex_;
  ServerState state_ ABSL_GUARDED_BY(mutex_) = ServerState::kLoading;
  bool live_ ABSL_GUARDED_BY(mutex_) = true;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Watcher> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire
