// Copies leading tokens of blocks: how a sequence gets its own tail of a shared block. Called by
// kernel workers before any row of the step is appended; different layers may be copied by
// different workers at once.
#pragma once

#include <span>

#include "runtime/kv_cache/kv_layout.h"
#include "runtime/step_batch.h"

namespace quire {

// Copies K and V of tokens [0, token_count) of src to dst in one layer, all heads, for every copy
// in order; the V of dst's other tokens becomes zero, their K is unspecified. token_count is 1..63
// and src != dst.
void CopyBlocks(const KvLayerView& kv, std::span<const BlockCopy> copies);

}  // namespace quire
