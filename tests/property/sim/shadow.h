// What must be true of every request and sequence, kept beside the scheduler in the plainest way:
// one list of requests, one block table per sequence, no sharing tricks. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/clock.h"
#include "scheduler/request.h"
#include "scheduler/token_event.h"
#include "tests/property/sim/solo.h"

namespace quire::sim {

struct ShadowRequest;

struct ShadowSeq {
  SequenceId id;
  const ShadowRequest* owner = nullptr;
  SoloOutput expected;         // D1
  std::vector<TokenId> whole;  // prompt and expected output
  std::vector<BlockId> table;  // as last planned; empty unless it runs

  int32_t num_prompt() const;
  int32_t known() const { return num_prompt() + received; }
  int32_t uncomputed() const { return known() - computed; }
  bool paused() const;
  bool ends_now() const { return must_end != FinishReason::kNone; }

  int32_t received = 0;         // tokens
  int32_t computed = 0;         // rows whose KV exists
  int32_t computed_before = 0;  // before it was last preempted
  int32_t preemptions = 0;
  int32_t cached = 0;  // prompt tokens found at first admission
  bool started = false, running = false, ended = false;
  MonotonicTime first_scheduled{};

  // Of the step at hand.
  FinishReason must_end = FinishReason::kNone;  // time or an abort ends it
  bool draws = false;                           // an event with its token is due
  bool fails = false;                           // its draw was made to fail
  bool planned = false, preempted_now = false, admitted_now = false;
  int32_t granted = 0;
};

struct ShadowRequest {
  Request request;
  std::vector<ShadowSeq> seqs;
  bool paused = false;
  FinishReason abort = FinishReason::kNone;  // asked for
  int32_t open = 0;                          // sequences that have not ended
};

inline int32_t ShadowSeq::num_prompt() const {
  return static_cast<int32_t>(owner->request.prompt.size());
}
inline bool ShadowSeq::paused() const { return owner->paused; }

// What a world has gone through: a harness that never preempts proves nothing about preemption.
struct Coverage {
  int64_t accepted = 0, too_large = 0, refused = 0;
  int64_t preemptions = 0, paused_victims = 0, recomputed = 0;
  int64_t aborts_in_step = 0, stalls_in_step = 0, failed_draws = 0, nan_rows = 0;
  int64_t timed_out_waiting = 0, timed_out_running = 0, queue_aged = 0;
  int64_t drains = 0, pool_bound = 0, whole = 0;
  int64_t hits = 0, copies = 0, replaced = 0;

  void Merge(const Coverage& other);
};

}  // namespace quire::sim
