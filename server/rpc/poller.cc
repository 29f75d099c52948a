#include "server/rpc/poller.h"

#include <grpc/support/time.h>
#include <pthread.h>

#include <utility>

#include "absl/time/time.h"

namespace quire {

namespace {
constexpr absl::Duration kLastCall = absl::Seconds(5);
}  // namespace

Poller::Poller(std::unique_ptr<grpc::ServerCompletionQueue> queue) : queue_(std::move(queue)) {}

Poller::~Poller() { Shutdown(); }

void Poller::Start() {
  thread_ = std::thread([this] { Loop(); });
  pthread_setname_np(thread_.native_handle(), "quire-poller");
}

void Poller::Shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    // Without its thread nothing can end a call.
    if (thread_.joinable())
      mutex_.AwaitWithTimeout(
          absl::Condition(+[](int32_t* n) { return *n == 0; }, &calls_), kLastCall);
    closed_ = true;
    posted_.clear();
  }
  queue_->Shutdown();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    Loop();  // never started: a queue must be drained all the same
  }
}

void Poller::CallBegan() {
  absl::MutexLock lock(&mutex_);
  ++calls_;
}

void Poller::CallEnded() {
  absl::MutexLock lock(&mutex_);
  --calls_;
}

void Poller::Post(std::shared_ptr<Tag> tag) {
  absl::MutexLock lock(&mutex_);
  if (!closed_) posted_.push_back(std::move(tag));
}

void Poller::Poke() {
  absl::MutexLock lock(&mutex_);
  if (closed_ || poked_ || posted_.empty()) return;
  poked_ = true;
  alarm_.Set(queue_.get(), gpr_now(GPR_CLOCK_MONOTONIC), static_cast<Tag*>(&wakeup_));
}

void Poller::RunPosted() {
  {
    absl::MutexLock lock(&mutex_);
    poked_ = false;
    running_.swap(posted_);
  }
  for (const std::shared_ptr<Tag>& tag : running_) tag->Proceed(true);
  running_.clear();
}

void Poller::Loop() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Tag*>(tag)->Proceed(ok);
}

}  // namespace quire
