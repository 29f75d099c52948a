// Prepares requests: template, tokenize, defaults, capacity. One thread of its own, so that neither
// the gRPC pollers nor the engine ever tokenize. Submit and Post: any thread, never block.
// Everything is bounded. Small items go before large ones, which take seconds: an item waits for at
// most one large item, and large ones advance. What is dead when its turn comes costs nothing.
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
#include "server/engine/admission.h"
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
  int32_t max_running = 64;          // sequences in the batch, for estimates
  int64_t max_queue_ms = 120'000;
  bool deadline_admission = false;
};

// All outlive the intake.
struct IntakeLinks {
  const PromptEncoder* encoder = nullptr;
  Inbox* inbox = nullptr;
  StepEvents* events = nullptr;
  const Clock* clock = nullptr;
};

// Work of a call that is not Generate: Tokenize, Detokenize.
struct IntakeJob {
  size_t bytes = 0;  // what it works on
  MonotonicTime deadline = MonotonicTime::kInfinite;
  std::shared_ptr<const std::atomic<bool>> cancelled{};  // of the call; may be null
  // Called exactly once. Not OK: do no work, end the call with this.
  absl::AnyInvocable<void(absl::Status)> run{};
};

class Intake {
 public:
  Intake(IntakeOptions options, const IntakeLinks& links);
  ~Intake();  // Stop

  void Start();
  // After the item in progress. Requests that still wait end with kShutdown, jobs with DRAINING.
  void Stop();

  // Takes the request or refuses it at once: what Admission::Enter says, UNAVAILABLE DRAINING,
  // DEADLINE_EXCEEDED if it comes too late. After OK exactly one refusal or one sequence of token
  // events reaches delivery. After an error nothing does: the caller calls Delivery::Discard and
  // ends the call.
  absl::Status Submit(ValidRequest request);
  // Runs `job` on the intake thread. RESOURCE_EXHAUSTED QUEUE_FULL if max_jobs wait, UNAVAILABLE
  // DRAINING; after an error the job is not called.
  absl::Status Post(IntakeJob job);
  // Counts a call that validation refused (received and rejected). Any thread.
  void CountRefused(const absl::Status& status);
  // From now on Submit and Post answer UNAVAILABLE DRAINING, and so do the jobs that wait.
  void StartDraining();
  // What estimates and retry delays are made of. Engine thread, after each step.
  void SetLoad(const StepStats& stats) { admission_.SetLoad(stats); }
  int64_t RetryDelayMs() const { return admission_.RetryDelayMs(); }

  IntakeStats Stats() const;
  // One item on the calling thread, for tests and tools without the thread. False: nothing waits.
  bool RunOne();

 private:
  using Item = std::variant<ValidRequest, IntakeJob>;
  void Loop();
  void Add(Item item, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Item TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefuseJobs();
  absl::Status JobEnd(const IntakeJob& job) const;  // OK: it is alive
  FinishReason RequestEnd(const ValidRequest& request) const;
  MonotonicTime TimeLimitOf(const ValidRequest& request) const;
  void Prepare(ValidRequest request);
  void Refuse(RequestId id, absl::Status status, FinishReason reason);
  bool HasItem() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !small_.empty() || !large_.empty();
  }

  const IntakeOptions options_;
  const IntakeLinks links_;
  Admission admission_;
  mutable absl::Mutex mutex_;
  std::deque<Item> small_ ABSL_GUARDED_BY(mutex_), large_ ABSL_GUARDED_BY(mutex_);
  // Small items that still go before the next large one; counted anew after each large one.
  size_t small_turns_ ABSL_GUARDED_BY(mutex_) = 0;
  bool after_large_ ABSL_GUARDED_BY(mutex_) = true;
  int32_t jobs_ ABSL_GUARDED_BY(mutex_) = 0;
  IntakeStats stats_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace quire
