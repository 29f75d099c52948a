// Prepares requests: template, tokenize, defaults, capacity. One thread of its own, so that neither
// the gRPC pollers nor the engine ever tokenize. Submit and Post: any thread, never block.
// Everything is bounded.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "runtime/base/clock.h"
#include "runtime/text/prompt_encoder.h"
#include "scheduler/capacity.h"
#include "server/engine/inbox.h"
#include "server/engine/step_events.h"
#include "server/engine/step_stats.h"
#include "server/engine/valid_request.h"

namespace quire {

// Unique in this process, never kNone. Any thread.
RequestId NextRequestId();

struct IntakeOptions {
  CapacityLimits capacity;
  int32_t vocab_size = 0;
  std::vector<TokenId> eos_ids{};
  int32_t default_max_tokens = 512;
  int64_t max_request_ms = 600'000;  // time limits are cut to it
  int32_t max_jobs = 128;            // Tokenize and Detokenize jobs that may wait
};

// All outlive the intake.
struct IntakeLinks {
  const PromptEncoder* encoder = nullptr;
  Inbox* inbox = nullptr;
  StepEvents* events = nullptr;
  const Clock* clock = nullptr;
};

class Intake {
 public:
  Intake(IntakeOptions options, const IntakeLinks& links);
  ~Intake();  // Stop

  void Start();
  void Stop();  // requests that still wait end with kShutdown; jobs that wait run

  // Takes the request or refuses it at once: RESOURCE_EXHAUSTED QUEUE_FULL (with a delay),
  // UNAVAILABLE DRAINING. After OK exactly one refusal or one sequence of token events reaches
  // delivery. After an error nothing does: the caller calls Delivery::Discard and ends the call.
  absl::Status Submit(ValidRequest request);
  // Runs `job` on the intake thread (Tokenize, Detokenize, counting), in order with requests.
  // RESOURCE_EXHAUSTED QUEUE_FULL if max_jobs wait.
  absl::Status Post(absl::AnyInvocable<void()> job);
  // Counts a call that validation refused (received and rejected). Any thread.
  void CountRefused(const absl::Status& status);
  // From now on Submit answers UNAVAILABLE DRAINING.
  void StartDraining();
  // What retry delays are made of; set after each step. Any thread.
  void SetLoad(int64_t waiting_tokens, double prefill_tokens_per_second);
  int64_t RetryDelayMs() const;  // 50..30000, with jitter

  IntakeStats Stats() const;
  // One item on the calling thread, for tests and tools without the thread. False: nothing waits.
  bool RunOne();

 private:
  using Item = std::variant<ValidRequest, absl::AnyInvocable<void()>>;
  void Loop();
  void Prepare(ValidRequest request);
  void Refuse(RequestId id, absl::Status status, FinishReason reason);
  bool HasItem() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !items_.empty();
  }

  const IntakeOptions options_;
  const IntakeLinks links_;
  mutable absl::Mutex mutex_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  int32_t jobs_ ABSL_GUARDED_BY(mutex_) = 0;
  IntakeStats stats_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int64_t> waiting_tokens_{0};
  std::atomic<double> prefill_rate_{0};
  std::thread thread_;
};

}  // namespace quire
