// One output in the making: its tokens, its blocks, and two counts from which everything else
// follows. Owned by its LiveRequest; engine thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/sampling/sample_spec.h"
#include "scheduler/block_table.h"
#include "scheduler/kv_window.h"
#include "scheduler/prefix_index.h"
#include "scheduler/request.h"
#include "scheduler/token_event.h"

namespace quire {

struct LiveRequest;

// Of a sequence as an output among others of its request. The first output computes the prompt for
// all; they wait for it, and part from it when it is done.
struct Forks {
  LiveRequest* owner = nullptr;  // with the request's other outputs
  // Of the first output until its prompt is computed: the others that wait for it, and the places
  // in the batch that it holds for itself and the first of them.
  int32_t children = 0;
  int32_t places = 1;
  bool pending = false;  // it is one of those, in no list
};

// What it has lost to others, so that the policy can bound it.
struct Setbacks {
  int32_t preemptions = 0;     // times it lost its blocks
  int32_t displacements = 0;   // those while it could run
  bool pinned = false;         // they were as many as may be: it keeps its blocks
  uint64_t admitted_step = 0;  // step of its last admission: in it nobody takes its place
  int32_t bypasses = 0;        // since it began to wait: admissions behind it that passed it
  int32_t deferrals = 0;       // steps it waited for a prefix that another one computes
};

struct Sequence {
  static constexpr int32_t kNotLookedUp = -1;

  Sequence(const Request& request, int32_t output_index, uint64_t order, BlockPool& pool);

  int32_t num_tokens() const { return static_cast<int32_t>(tokens.size()); }
  int32_t num_prompt() const { return static_cast<int32_t>(request->prompt.size()); }
  int32_t num_output() const { return num_tokens() - num_prompt(); }
  int32_t uncomputed() const { return num_tokens() - num_computed; }  // >= 1 while it lives
  // At its longest: blocks of all outputs, which are the prompt's unless a window gives them back;
  // then of each output, >= 1.
  int32_t SharedBlocks() const {
    return request->kv.window_tokens > 0 ? 0 : num_prompt() / kBlockTokens;
  }
  int32_t OwnBlocks() const {
    return BlocksHeld(request->kv, num_prompt() + request->stop.max_tokens) - SharedBlocks();
  }
  // Most blocks it will ever hold, with so many outputs that fork from it.
  int64_t MostBlocks(int32_t outputs) const {
    return SharedBlocks() + int64_t{outputs} * OwnBlocks();
  }
  int64_t MostBlocks() const { return MostBlocks(running ? forks.places : 1 + forks.children); }
  // How many outputs that fork from it `blocks` blocks can hold to their end; may be negative.
  int32_t OutputsWithin(int32_t blocks) const { return (blocks - SharedBlocks()) / OwnBlocks(); }
  // Rank among running sequences: the higher level, then the earlier arrival. Fixed while both run.
  bool Outranks(const Sequence& other) const {
    return level != other.level ? level > other.level : order < other.order;
  }
  CacheScope scope() const { return {request->cache_domain, request->kv}; }
  bool ended() const { return ending != FinishReason::kNone; }
  // Gives back the blocks that its window has passed.
  void ReleasePassed();
  void Preempt();  // gives the blocks back; everything is computed again later

  SequenceId id;
  const Request* request;
  uint64_t order;               // arrival order, unique; kept for life
  std::vector<TokenId> tokens;  // prompt, then output; never reallocates
  BlockTable blocks;
  int32_t num_computed = 0;  // leading tokens whose KV exists
  // Leading tokens whose KV existed at some time: rows below it are recomputed.
  int32_t computed_before = 0;
  int32_t cached_prompt_tokens = kNotLookedUp;  // found in the prefix cache at first admission
  uint64_t granted_step = 0;                    // step in which it last got tokens
  int32_t priority = 0;                         // base priority; 0 for all under fcfs
  int32_t level = 0;  // effective priority with which it last left the queue
  Forks forks;
  Setbacks setbacks;
  bool started = false;  // has left the queue at least once
  MonotonicTime first_scheduled{};
  bool running = false;                       // in the running set; else in the queue, or retired
  bool paused = false;                        // gets no tokens
  FinishReason ending = FinishReason::kNone;  // set once; it is retired at the next step edge
};

// A request and its sequences: lives until the last of them has told its end.
struct LiveRequest {
  Request request;
  std::vector<Sequence> sequences;  // [num_sequences], addresses are stable
  int32_t open = 0;                 // sequences whose finish event is still to come
};

}  // namespace quire
