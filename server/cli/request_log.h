// One line per request on a file descriptor: JSON, or words for a terminal. Lines wait in a bounded
// queue for a thread of their own, so that a full pipe delays nobody, not even the shutdown: what
// does not fit is dropped and counted. Write: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/delivery/request_record.h"

namespace quire {

std::string JsonLine(const RequestRecord& record);   // with its line end
std::string PlainLine(const RequestRecord& record);  // the same in words

class RequestLog {
 public:
  static constexpr size_t kMostWaiting = 1024;

  RequestLog(int fd, bool json);  // the descriptor stays the caller's
  ~RequestLog();                  // writes what waits and can be written at once

  void Write(const RequestRecord& record);
  // Waits until what was written is out. False: not within `timeout`.
  bool Flush(absl::Duration timeout);
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  void Loop();
  // False: not writable, and the log ends.
  bool Put(const std::string& line);
  bool stopping();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !waiting_.empty();
  }
  bool Idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !writing_ && waiting_.empty(); }

  const int fd_;
  const bool json_;
  std::atomic<uint64_t> dropped_{0};
  absl::Mutex mutex_;
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // a line is between the queue and the descriptor
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace quire
