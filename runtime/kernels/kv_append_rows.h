// The vector code of appending: f32 rows to pairs of bf16 or to integers with a scale, as a table
// per instruction set with equal bits.
#pragma once

#include <cstdint>

#include "runtime/base/cpu_features.h"

namespace quire {

struct KvAppendRows {
  // dst[i] = bf16(src[2 i]) | bf16(src[2 i + 1]) << 16, for `pairs` i.
  void (*pack_neighbours)(const float* src, int32_t pairs, uint32_t* dst);
  // dst[i] = bf16(low[i]) | bf16(high[i]) << 16.
  void (*pack_rows)(const float* low, const float* high, int32_t count, uint32_t* dst);
  // q[i] = src[i] / scale to nearest, in -limit..limit; returns the scale, a bf16 not below
  // max |src| / limit. Below 2^-100 everything is 0; with NaN or infinity the scale is NaN, q is 0.
  uint16_t (*quantize)(const float* src, int32_t count, int32_t limit, int16_t* q);
};

// Rounds to nearest even, NaN stays NaN; independent of rounding and denormal modes.
const KvAppendRows& KvAppendRowsFor(IsaLevel isa);

}  // namespace quire
