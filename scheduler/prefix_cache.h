// Which of a sequence's blocks others may find, and what it may find itself: the prefix index as
// the scheduler uses it. Blocks become findable when the step that filled them has committed, full
// ones at once, a partial one when its sequence ends or is preempted. Blocks that nobody holds are
// given away in order of last use. Engine thread only; the pool outlives it.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/block_pool.h"
#include "scheduler/prefix_index.h"
#include "scheduler/sequence.h"

namespace quire {

struct PrefixCacheOptions {
  bool on = true;
  int32_t context_tokens = 0;
  PrefixIndexOptions index;
};

struct PrefixCacheStats {
  int64_t query_tokens = 0, hit_tokens = 0;  // of prompts, at first admission
  int64_t evictions = 0;                     // blocks that were findable and are not any more
  int64_t lookups = 0;                       // each costs a hash of the prompt
};

class PrefixCache {
 public:
  PrefixCache(BlockPool& pool, const PrefixCacheOptions& options);

  // What is known of a sequence's tokens but the last, which is always left to compute. Valid until
  // the next Find, and only while nothing is evicted.
  PrefixMatch Find(const Sequence& sequence);
  // Blocks that were filled since num_computed was `before`. A block that is known already takes
  // the place of the sequence's own, so that equal prefixes lie in one place.
  void PublishFull(Sequence& sequence, int32_t before);
  // The block that is not full, of a sequence that gives its blocks back.
  void PublishTail(Sequence& sequence);
  // Of a sequence whose values are not to be trusted: its blocks, and what follows from them.
  void Withdraw(const Sequence& sequence);
  // Makes `blocks` blocks free; they are available.
  void EnsureFree(int32_t blocks);

  bool Uses(const Sequence& sequence) const {
    return options_.on && !sequence.request->cache_bypass;
  }
  void CountQuery(int32_t tokens, int32_t hit);
  const PrefixIndex& index() const { return index_; }
  const PrefixCacheStats& stats() const { return stats_; }

 private:
  bool PublishBlock(Sequence& sequence, int32_t block, int32_t tokens);

  BlockPool& pool_;
  const PrefixCacheOptions options_;
  PrefixIndex index_;
  std::vector<BlockId> found_;  // storage of Find
  PrefixCacheStats stats_;
};

}  // namespace quire
