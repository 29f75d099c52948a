// Calls as coroutines: a call reads from top to bottom and is suspended wherever gRPC or another
// thread has to do something. A call starts at once, belongs to nobody, runs on its poller's thread
// only, and frees itself when it returns; the server outlives it because its shutdown waits for
// every call.
#pragma once

#include <grpcpp/server_context.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/rpc/poller.h"

namespace quire {

struct CallTask {
  // Built from the coroutine's arguments: its poller knows that it runs, and keeps its queue open
  // until it ended.
  struct promise_type {
    template <typename... Args>
    explicit promise_type(Args&... args) {
      (Find(args), ...);
      if (poller_ != nullptr) poller_->CallBegan();
    }
    ~promise_type() {
      if (poller_ != nullptr) poller_->CallEnded();
    }
    promise_type(const promise_type&) = delete;
    promise_type& operator=(const promise_type&) = delete;
    CallTask get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }  // handlers are guarded where they are called

   private:
    void Find(Poller& poller) { poller_ = &poller; }
    template <typename T>
    void Find(T&) {}
    Poller* poller_ = nullptr;
  };
};

// bool ok = co_await Operation([&](void* tag) { writer.Write(message, tag); });
template <typename Start>
class Operation final : public Tag {
 public:
  explicit Operation(Start start) : start_(std::move(start)) {}
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    start_(static_cast<void*>(static_cast<Tag*>(this)));
  }
  bool await_resume() const { return ok_; }

 private:
  void Proceed(bool ok) override {
    ok_ = ok;
    waiter_.resume();
  }
  Start start_;
  std::coroutine_handle<> waiter_;
  bool ok_ = false;
};

// The end of a call, whoever ended it. Construct before the call is requested; once it was, await
// it last, as gRPC holds a pointer to it until then. Poller thread only.
class CallEnd final : public Tag {
 public:
  explicit CallEnd(grpc::ServerContext& context) : context_(context) {
    context.AsyncNotifyWhenDone(static_cast<Tag*>(this));
  }
  // Called once if the client cancels or disconnects, or its deadline passes; at once if that has
  // happened.
  void OnCancel(std::function<void()> on_cancel) {
    on_cancel_ = std::move(on_cancel);
    if (over_ && context_.IsCancelled()) on_cancel_();
  }
  bool await_ready() const { return over_; }
  void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
  void await_resume() const {}

 private:
  void Proceed(bool) override {
    over_ = true;
    if (on_cancel_ && context_.IsCancelled()) on_cancel_();
    if (waiter_) waiter_.resume();
  }
  grpc::ServerContext& context_;
  std::function<void()> on_cancel_;
  std::coroutine_handle<> waiter_;
  bool over_ = false;
};

// Raised by any thread, awaited by one coroutine on its poller. Held by shared_ptr, as news may be
// on its way when the call ends. `co_await *signal` returns when it was raised since the last time,
// perhaps once too often.
class Signal final : public Tag, public std::enable_shared_from_this<Signal> {
 public:
  explicit Signal(Poller& poller) : poller_(poller) {}
  // Takes effect at the poller's next Poke.
  void Raise() {
    if (!posted_.exchange(true)) poller_.Post(shared_from_this());
  }
  bool await_ready() const { return raised_; }
  void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
  void await_resume() {
    raised_ = false;
    waiter_ = nullptr;
  }

 private:
  void Proceed(bool) override {
    posted_.store(false);
    raised_ = true;
    if (waiter_) waiter_.resume();
  }
  Poller& poller_;
  std::atomic<bool> posted_{false};
  bool raised_ = false;  // poller thread, as the rest
  std::coroutine_handle<> waiter_;
};

using Done = std::function<void(absl::Status)>;

// absl::Status s = co_await Answer(poller, [&](Done done) { ... });  done may be called at once or
// later, from any thread, exactly once.
template <typename Start>
class Answer {
 public:
  Answer(Poller& poller, Start start)
      : poller_(poller), start_(std::move(start)), result_(std::make_shared<Result>(poller)) {}
  bool await_ready() {
    start_(Done([result = result_, &poller = poller_](absl::Status status) {
      result->status = std::move(status);
      if (!result->first.exchange(true)) return;  // nobody waits yet
      poller.Post(result);
      poller.Poke();
    }));
    return false;
  }
  bool await_suspend(std::coroutine_handle<> waiter) {
    result_->waiter = waiter;
    return !result_->first.exchange(true);  // false: the answer is there
  }
  absl::Status await_resume() { return std::move(result_->status); }

 private:
  struct Result final : Tag {
    explicit Result(Poller&) {}
    void Proceed(bool) override { waiter.resume(); }
    absl::Status status;
    std::coroutine_handle<> waiter;
    std::atomic<bool> first{false};  // set by whichever comes first, the answer or the wait
  };
  Poller& poller_;
  Start start_;
  std::shared_ptr<Result> result_;
};

}  // namespace quire
