#include "server/rpc/health.h"

#include <algorithm>

namespace quire {

ServerState Health::state() const {
  absl::MutexLock lock(&mutex_);
  return state_;
}

bool Health::live() const {
  absl::MutexLock lock(&mutex_);
  return live_;
}

void Health::SetState(ServerState state) {
  absl::MutexLock lock(&mutex_);
  state_ = state;
  Tell();
}

void Health::GiveUp() {
  absl::MutexLock lock(&mutex_);
  live_ = false;
  Tell();
}

void Health::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  Tell();
}

std::optional<bool> Health::Serving(const std::string& service) const {
  absl::MutexLock lock(&mutex_);
  if (service == kLiveService) return live_;
  if (service.empty() ||
      std::find(services_.begin(), services_.end(), service) != services_.end()) {
    return state_ == ServerState::kReady && live_;
  }
  return std::nullopt;
}

void Health::AddWatcher(Poller* poller, std::shared_ptr<Signal> signal) {
  absl::MutexLock lock(&mutex_);
  watchers_.push_back({poller, std::move(signal)});
}

void Health::RemoveWatcher(const Signal* signal) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(watchers_, [&](const Watcher& w) { return w.signal.get() == signal; });
}

bool Health::closed() const {
  absl::MutexLock lock(&mutex_);
  return closed_;
}

void Health::Tell() {
  for (const Watcher& watcher : watchers_) {
    watcher.signal->Raise();
    watcher.poller->Poke();
  }
}

}  // namespace quire
