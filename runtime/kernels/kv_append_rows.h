// The vector code of appending: f32 rows to pairs of bf16, as a table per instruction set with
// equal bits.
#pragma once

#include <cstdint>

#include "runtime/base/cpu_features.h"

namespace quire {

struct KvAppendRows {
  // dst[i] = bf16(src[2 i]) | bf16(src[2 i + 1]) << 16, for `pairs` i.
  void (*pack_neighbours)(const float* src, int32_t pairs, uint32_t* dst);
  // dst[i] = bf16(low[i]) | bf16(high[i]) << 16.
  void (*pack_rows)(const float* low, const float* high, int32_t count, uint32_t* dst);
};

// Rounds to nearest even, NaN stays NaN; independent of rounding and denormal modes.
const KvAppendRows& KvAppendRowsFor(IsaLevel isa);

}  // namespace quire
