// The door: decides at once whether a request may wait, from the room that is left (Inbox) and,
// with --deadline-admission, from the measured rates. Says when a refused client should come back.
// Any thread; nothing blocks.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/base/clock.h"
#include "runtime/base/seqlock.h"
#include "scheduler/service_estimate.h"
#include "server/engine/inbox.h"
#include "server/engine/step_stats.h"
#include "server/engine/valid_request.h"

namespace quire {

struct AdmissionOptions {
  int32_t max_running = 64;          // sequences in the batch
  int32_t default_max_tokens = 512;  // of requests that give none
  int64_t max_queue_ms = 120'000;
  bool by_deadline = false;  // refuse what is bound to miss its deadline or the longest wait
};

class Admission {
 public:
  // Both outlive it.
  Admission(const AdmissionOptions& options, Inbox* inbox, const Clock* clock)
      : options_(options), inbox_(inbox), clock_(clock) {}

  // Takes a slot. RESOURCE_EXHAUSTED QUEUE_FULL or QUEUE_TOKENS_FULL, and with by_deadline
  // RESOURCE_EXHAUSTED QUEUE_AGE (the wait is too long: come back) or DEADLINE_EXCEEDED DEADLINE
  // of stage admission (without any wait it would be too late).
  absl::Status Enter(const ValidRequest& request);
  // The same once the prompt is counted. The slot stays; whoever is refused releases it.
  absl::Status Count(const ValidRequest& request, int64_t prompt_tokens);

  void SetLoad(const StepStats& stats);  // engine thread, after each step
  // Time to prefill what waits, and for a place to become free; 50..30000, with jitter.
  int64_t RetryDelayMs() const;

 private:
  struct Load {
    int32_t running = 0;
    int64_t prompt_backlog = 0;
    ServiceRates rates{};
  };
  struct Reserved {
    int64_t sequences = 0, tokens = 0;
  };
  absl::Status CheckDeadline(const ValidRequest& request, int64_t prompt_tokens,
                             const Reserved& own) const;
  absl::Status Full(Room room) const;

  const AdmissionOptions options_;
  Inbox* const inbox_;
  const Clock* const clock_;
  Seqlock<Load> load_;
};

// Prompt tokens that are certain before the prompt is encoded.
int64_t LeastTokens(const PromptSource& prompt);

}  // namespace quire
