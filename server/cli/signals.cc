#include "server/cli/signals.h"

#include <unistd.h>

#include <csignal>
#include <ctime>
#include <utility>

namespace quire {
namespace {

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

constexpr timespec kPoll = {.tv_sec = 0,
                            .tv_nsec = 100'000'000};  // how late the destructor may be noticed

}  // namespace

StopSignals::StopSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { Loop(); });
}

StopSignals::~StopSignals() {
  stopping_ = true;
  thread_.join();
}

void StopSignals::ExitAtOnce(int code, std::function<void()> last_words) {
  const std::lock_guard lock(mutex_);
  exit_code_ = code;
  last_words_ = std::move(last_words);
}

void StopSignals::Keep() {
  const std::lock_guard lock(mutex_);
  exit_code_ = -1;
}

bool StopSignals::Wait(int millis) {
  std::unique_lock lock(mutex_);
  return came_.wait_for(lock, std::chrono::milliseconds(millis), [this] { return signalled_; });
}

void StopSignals::Loop() {
  const sigset_t set = Signals();
  while (!stopping_) {
    if (sigtimedwait(&set, nullptr, &kPoll) < 0) continue;
    const std::lock_guard lock(mutex_);
    if (exit_code_ >= 0) {
      if (last_words_) last_words_();
      _exit(exit_code_);
    }
    signalled_ = true;
    came_.notify_all();
  }
}

}  // namespace quire
