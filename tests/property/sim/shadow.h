// What must be true of every request and sequence, kept beside the scheduler in the plainest way:
// one list of requests, one block table per sequence, no sharing tricks. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
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
  // Whether a row at `position`, or a later one, sees a token of the block.
  bool Needs(size_t block, int32_t position) const;
  int32_t uncomputed() const { return known() - computed; }
  bool paused() const;
  bool unforked() const;  // its prompt is another output's to compute
  bool ends_now() const { return must_end != FinishReason::kNone; }

  int32_t received = 0;         // tokens
  int32_t computed = 0;         // rows whose KV exists
  int32_t computed_before = 0;  // before it was last preempted
  int32_t preemptions = 0;
  int32_t level = 0;             // rank since it was admitted
  int32_t bypasses = 0;          // since it began to wait, as far as they are certain
  int32_t most_bypasses = 0;     // the same, if every start since then was one
  bool passed_by_share = false;  // since then, by a tenant that had more
  int32_t deferrals = 0;         // steps it waited for what another computes
  int32_t displacements = 0;     // preemptions while it could run
  bool pinned = false;
  int32_t first_hit = -1;                    // tokens found in the cache when it was first admitted
  FinishReason abort = FinishReason::kNone;  // asked for
  bool started = false, running = false, ended = false;
  MonotonicTime first_scheduled{};

  // Of the step at hand.
  FinishReason must_end = FinishReason::kNone;  // time or an abort ends it
  bool draws = false;                           // an event with its token is due
  bool fails = false;                           // its draw was made to fail
  bool planned = false, preempted_now = false, admitted_now = false, deferred_now = false;
  bool parts_now = false;  // its first token is drawn from the row of a shared prompt
  int32_t granted = 0;
  int32_t hit_now = 0;     // tokens found in the cache
  int32_t passed_now = 0;  // admissions that certainly passed it
};

struct ShadowRequest {
  Request request;
  std::vector<ShadowSeq> seqs;
  int64_t arrival = 0;  // order
  bool paused = false;
  bool forked = false;  // the first output has drawn, and the others have parted from it
  FinishReason abort = FinishReason::kNone;  // asked for
  int32_t open = 0;                          // sequences that have not ended
};

inline int32_t ShadowSeq::num_prompt() const {
  return static_cast<int32_t>(owner->request.prompt.size());
}
inline bool ShadowSeq::Needs(size_t block, int32_t position) const {
  const KvPolicy& kv = owner->request.kv;
  const auto begin = static_cast<int32_t>(block) * kBlockTokens;
  return kv.window_tokens == 0 || begin < kv.sink_tokens ||
         begin + kBlockTokens > position - kv.window_tokens + 1;
}
inline bool ShadowSeq::unforked() const { return id.output_index > 0 && !owner->forked; }
inline bool ShadowSeq::paused() const { return owner->paused; }

// What a block holds, by what was written into it.
struct ShadowBlock {
  CacheDomain domain;
  KvPolicy kv;
  RequestId writer{};      // of its last rows
  bool bypass = false;     // computed for a request that shares nothing
  bool tainted = false;    // by a sequence whose values are not to be trusted
  int32_t filled = 0;      // leading tokens whose rows have been committed
  uint64_t chain = 0;      // of all tokens to the end of a full block
  int64_t cached_at = -1;  // the step since which nobody holds it, though it can be found
};

// What a world has gone through: a harness that never preempts proves nothing about preemption.
// clang-format off: it indents a list of bare calls deeper row by row
#define QUIRE_SIM_COVERAGE(X) \
  X(accepted) X(too_large) X(refused) X(preemptions) X(paused_victims) X(recomputed) \
  X(aborts_in_step) X(stalls_in_step) X(failed_draws) X(nan_rows) X(timed_out_waiting) \
  X(timed_out_running) X(queue_aged) X(drains) X(pool_bound) X(whole) X(hits) X(hit_tokens) \
  X(partial_hits) X(copies) X(merged) X(evicted) X(bypasses) X(displacements) X(overtakes) \
  X(forks) X(deferrals) X(windows) X(output_aborts) X(by_share)
// clang-format on
struct Coverage {
#define X(name) int64_t name = 0;
  QUIRE_SIM_COVERAGE(X)
#undef X
  void Merge(const Coverage& other);
};
std::string ToText(const Coverage& coverage);

}  // namespace quire::sim
