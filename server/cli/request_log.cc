#include "server/cli/request_log.h"

#include <poll.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"

namespace quire {
namespace {

constexpr int kPollMillis = 100;

}  // namespace

// Names are the client's: JSON escapes them, and they are printable ASCII to begin with.
std::string JsonLine(const RequestRecord& r) {
  nlohmann::ordered_json line = {{"event", "request"},
                                 {"request_id", r.request_id},
                                 {"tenant", r.tenant},
                                 {"method", "Generate"},
                                 {"code", absl::StatusCodeToString(r.code)},
                                 {"reason", r.reason},
                                 {"outputs", r.outputs},
                                 {"prompt_tokens", r.usage.prompt_tokens},
                                 {"cached_prompt_tokens", r.usage.cached_prompt_tokens},
                                 {"completion_tokens", r.usage.completion_tokens},
                                 {"intake_us", r.timing.intake_us},
                                 {"queue_us", r.timing.queue_us},
                                 {"prefill_us", r.timing.prefill_us},
                                 {"decode_us", r.timing.decode_us},
                                 {"duration_us", r.duration_us},
                                 {"preemptions", r.timing.preemptions}};
  return line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string PlainLine(const RequestRecord& r) {
  return absl::StrFormat(
      "quire: %s%s%s: %s %s, %d + %d tokens (%d cached), %.3f s, first token after %.3f s%s\n",
      r.tenant, r.tenant.empty() ? "" : "/", r.request_id.empty() ? "request" : r.request_id,
      absl::StatusCodeToString(r.code), r.reason, r.usage.prompt_tokens, r.usage.completion_tokens,
      r.usage.cached_prompt_tokens, static_cast<double>(r.duration_us) * 1e-6,
      static_cast<double>(r.timing.intake_us + r.timing.queue_us + r.timing.prefill_us) * 1e-6,
      r.timing.preemptions > 0 ? absl::StrFormat(", %d preemptions", r.timing.preemptions) : "");
}

RequestLog::RequestLog(int fd, bool json) : fd_(fd), json_(json), thread_([this] { Loop(); }) {}

RequestLog::~RequestLog() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void RequestLog::Write(const RequestRecord& record) {
  std::string line = json_ ? JsonLine(record) : PlainLine(record);
  absl::MutexLock lock(&mutex_);
  if (waiting_.size() >= kMostWaiting) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  waiting_.push_back(std::move(line));
}

bool RequestLog::Flush(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(this, &RequestLog::Idle), timeout);
}

void RequestLog::Loop() {
  while (true) {
    std::string line;
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
      mutex_.Await(absl::Condition(this, &RequestLog::HasWork));
      if (waiting_.empty()) return;
      line = std::move(waiting_.front());
      waiting_.pop_front();
      writing_ = true;
    }
    if (!Put(line)) return;
  }
}

// A pipe that can be written takes PIPE_BUF bytes without blocking, more than a line has.
bool RequestLog::Put(const std::string& line) {
  pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
  while (poll(&ready, 1, kPollMillis) == 0) {
    if (stopping()) return false;
  }
  if (write(fd_, line.data(), line.size()) < 0) dropped_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool RequestLog::stopping() {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

}  // namespace quire
