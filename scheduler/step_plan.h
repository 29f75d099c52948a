// The decision of a step: who runs, how many tokens, in which blocks. Owned by the Scheduler, valid
// until Commit. Engine thread only. Printable (DebugString), so that tests compare text.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/step_batch.h"
#include "scheduler/request.h"

namespace quire {

struct PlannedSeq {
  SequenceId id;
  int32_t num_computed = 0;  // tokens whose KV exists before this step
  std::span<const TokenId>
      tokens;  // granted now, size >= 1: the sequence's tokens [num_computed, + size)
  std::span<const TokenId> history;  // all known tokens of the sequence: prompt and output so far
  std::span<const BlockId> block_table;  // covers num_computed + tokens.size() tokens
  int32_t num_logits = 0;  // trailing rows that yield logits: 0 inside a prompt, else 1
  // Draws from each: outputs id.output_index, + 1, ... of the request. More than one at the end of
  // a prompt whose outputs part there.
  int32_t num_draws = 1;
  int32_t num_prompt = 0;            // prompt length
  const Request* request = nullptr;  // lives until its last sequence has finished
};

struct StepPlan {
  std::span<const PlannedSeq> seqs;  // decode rows first, then prompts, each in arrival order
  std::span<const BlockCopy> copies;
  // admitted: with the outputs that will be forked in places held for them. preempted: without
  // them. deferred: what waits a step for the prefix that another sequence computes in it.
  std::span<const SequenceId> admitted, preempted;
  std::span<const SequenceId> deferred{};
  int32_t num_tokens = 0;  // sum of tokens.size() <= token budget; 0 = nothing to run

  std::string DebugString() const;
};

}  // namespace quire
