// SIGTERM and SIGINT as something to wait for, and SIGPIPE ignored. Make one before other threads
// start, as they inherit the signal mask. One per process; main thread, but for the thread it owns.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace quire {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();

  // From now on a signal ends the process with this code, without any clean-up but `last_words`,
  // which runs on the thread of the signals. When this returns, earlier ones are not running.
  void ExitAtOnce(int code, std::function<void()> last_words = nullptr);
  // From now on a signal is kept for Wait. The state after construction.
  void Keep();
  // Waits up to `millis`; true once a signal has come.
  bool Wait(int millis);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable came_;
  int exit_code_ = -1;  // < 0: keep
  std::function<void()> last_words_;
  bool signalled_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace quire
