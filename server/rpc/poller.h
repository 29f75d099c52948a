// A completion queue and the one thread that serves it. Everything a call does happens on its
// poller's thread; other threads hand news over with Post and wake the poller with Poke, once per
// batch of news (a poke is an Alarm, a few microseconds). Post and Poke: any thread. The Poller
// owns what is posted until it has proceeded.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace quire {

// What waits for an event of a completion queue.
class Tag {
 public:
  // ok: what gRPC says about the operation. Poller thread.
  virtual void Proceed(bool ok) = 0;

 protected:
  ~Tag() = default;
};

class Poller {
 public:
  explicit Poller(std::unique_ptr<grpc::ServerCompletionQueue> queue);
  ~Poller();  // Shutdown

  grpc::ServerCompletionQueue* queue() { return queue_.get(); }
  void Start();
  // Calls that run on this poller, the ones that wait for a client included. Any thread.
  void CallBegan();
  void CallEnded();
  // After grpc::Server::Shutdown: waits (a bounded time) for the last call, since an operation on a
  // closed queue aborts the process; returns when every tag has come back and the thread has ended.
  void Shutdown();

  // `tag` proceeds (ok = true) after the next Poke. Dropped after Shutdown.
  void Post(std::shared_ptr<Tag> tag);
  void Poke();  // does nothing if nothing was posted

 private:
  class Wakeup final : public Tag {
   public:
    explicit Wakeup(Poller* poller) : poller_(poller) {}
    void Proceed(bool) override { poller_->RunPosted(); }

   private:
    Poller* poller_;
  };
  void Loop();
  void RunPosted();

  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::thread thread_;
  Wakeup wakeup_{this};
  absl::Mutex mutex_;
  std::vector<std::shared_ptr<Tag>> posted_ ABSL_GUARDED_BY(mutex_);
  int32_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool poked_ ABSL_GUARDED_BY(mutex_) = false;  // the alarm is set and has not come back
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Tag>> running_;  // poller thread only; keeps its storage
};

}  // namespace quire
