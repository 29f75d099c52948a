// Which blocks of a sequence a KvPolicy needs: those with sink tokens, and those that its window
// has not passed. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/ids.h"
#include "scheduler/request.h"

namespace quire {

// The first block that rows at `position` and later need beside the sinks.
inline int32_t FirstWindowBlock(const KvPolicy& kv, int32_t position) {
  if (kv.window_tokens == 0) return 0;
  return std::max(0, position - kv.window_tokens + 1) / kBlockTokens;
}

inline int32_t SinkBlocks(const KvPolicy& kv) { return BlocksFor(kv.sink_tokens); }

// Whether rows at `position` and later need the block.
inline bool NeedsBlock(const KvPolicy& kv, int32_t block, int32_t position) {
  return block < SinkBlocks(kv) || block >= FirstWindowBlock(kv, position);
}

// Blocks with which a sequence of any length can go on, in chunks of a block's tokens: sinks, a
// window that begins anywhere in a block, and a chunk. INT32_MAX without a window.
inline int32_t WindowBlocks(const KvPolicy& kv) {
  if (kv.window_tokens == 0) return INT32_MAX;
  const int64_t window = int64_t{kv.window_tokens} - 1 + kBlockTokens;
  const int64_t blocks = SinkBlocks(kv) + (window + kBlockTokens - 1) / kBlockTokens + 1;
  return static_cast<int32_t>(std::min<int64_t>(INT32_MAX, blocks));
}

// Blocks that `tokens` tokens need.
inline int32_t BlocksHeld(const KvPolicy& kv, int32_t tokens) {
  return std::min(BlocksFor(tokens), WindowBlocks(kv));
}

}  // namespace quire
