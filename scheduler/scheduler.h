// Continuous batching as a pure state machine: no thread, clock, model, gRPC or metrics inside.
// Engine thread only. One token budget per step; prefill and decode are not states, they follow
// from two counts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/clock.h"
#include "runtime/sampling/sample_spec.h"
#include "scheduler/fair_share.h"
#include "scheduler/queue_policy.h"
#include "scheduler/request.h"
#include "scheduler/service_estimate.h"
#include "scheduler/step_plan.h"
#include "scheduler/token_event.h"

namespace quire {

struct SchedulerOptions {
  int32_t context_tokens = 0;              // effective context
  int32_t step_tokens = 128;               // token budget of a step, >= 1
  int32_t max_running = 64;                // sequences in the batch
  int32_t max_waiting = 256;               // sequences in the queue
  int64_t max_waiting_tokens = 262144;     // uncomputed prompt tokens in the queue
  int64_t max_queue_ns = 120'000'000'000;  // older waiting requests end with kQueueAge
  // While somebody decodes, prompts get so many tokens that a step takes no longer than this; 0:
  // step_tokens always.
  int64_t target_itl_ns = 0;
  QueuePolicy queue{};
  bool prefix_cache = true;      // what is computed stays findable for later prompts
  uint64_t cache_seed = 0;       // of its hash: another one in each process
  int32_t cache_hash_bits = 64;  // fewer only in tests, to force collisions
};

// Computed from state, never from deltas.
struct SchedulerStats {
  int32_t running = 0, waiting = 0;  // sequences in the batch; waiting, preempted, paused
  int64_t waiting_tokens = 0;        // uncomputed prompt tokens of waiting sequences
  int64_t prompt_backlog = 0;        // of those in the batch, before they draw; decodes have none
  int32_t blocks_total = 0, blocks_used = 0, blocks_cached = 0,
          blocks_free = 0;  // add up: free + cached + used
  int64_t sequences_started = 0,
          sequences_finished = 0;  // since start; started = finished + running + waiting
  // Since start, by cause (block_planner.h), and their sum.
  int64_t preemptions_for_blocks = 0, preemptions_for_priority = 0, preemptions_of_paused = 0;
  int64_t preemptions = 0;
  int64_t prefill_tokens = 0, recompute_tokens = 0, decode_tokens = 0;  // rows computed since start
  // Prompt tokens at first admission: looked up, and found. Findable blocks given to others.
  int64_t prefix_query_tokens = 0, prefix_hit_tokens = 0, block_evictions = 0;
  ServiceRates rates;  // over recent steps, as far as ObserveStep told them
};

class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, int32_t num_blocks);
  ~Scheduler();

  absl::Status Add(
      Request request);  // kInvalidArgument: can never fit; kResourceExhausted: queue full
  void Abort(RequestId id, FinishReason reason);  // idempotent, any state, all its sequences; event
                                                  // comes with the next Commit
  // The same for one output whose text has come to its end; the others go on.
  void AbortOutput(SequenceId id, FinishReason reason);
  void SetPaused(
      RequestId id,
      bool paused);  // slow reader: keeps its blocks, gets no tokens, is the first victim
  const StepPlan& Schedule(
      MonotonicTime now);  // also expires deadlines; grants >= 1 token if any sequence is runnable
  // How long Forward and sampling of the step took; optional, before its Commit. What the budget of
  // later steps and the rates learn from; no output depends on it.
  void ObserveStep(int64_t nanos);
  // Called after every Schedule, even an empty one. Appends to events; drawn tokens are matched by
  // sequence.
  void Commit(std::span<const Sampled> sampled, std::vector<TokenEvent>& events);
  MonotonicTime NextDeadline() const;  // when an idle engine must wake; kInfinite if never
  bool HasWork() const;                // a Schedule now would do something
  SchedulerStats Stats() const;
  std::span<const TenantShare> Tenants() const;  // [kMaxTenants]; valid until destruction
  absl::Status Audit() const;    // INTERNAL: what does not balance in the books; allocates
  void CheckInvariants() const;  // dies of it

 private:
  friend struct SchedulerTestPeer;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quire
