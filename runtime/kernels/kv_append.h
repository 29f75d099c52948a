// Writes the K and V of a step's rows into their slots of the KV pool, in the pool's element type.
// Any worker, each with its own part of (rows x heads): parts may share a block, since a slot has
// one writer.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/ids.h"
#include "runtime/kv_cache/kv_layout.h"

namespace quire {

// The K and V of all rows of a step, after rope. Head h of row r starts at r * stride + h *
// head_dim.
struct KvRows {
  std::span<const KvSlot>
      slots;  // [rows], the whole step: rows of one sequence are neighbours, ascending
  const float* k = nullptr;
  const float* v = nullptr;
  int64_t stride = 0;  // floats from one row to the next, of k and of v
};

// The part of the work that one call does: rows [row_begin, row_end) of heads [head_begin,
// head_end).
struct KvAppendPart {
  int32_t row_begin, row_end;
  int32_t head_begin, head_end;
};

// A row at offset 0 opens its block: the V of the tokens that this step does not write becomes
// zero, so that masked tokens, whose weight is exactly 0, never meet a stale NaN.
void AppendKv(const KvLayerView& kv, const KvRows& rows, const KvAppendPart& part);

}  // namespace quire
