// Entry points of the units that are compiled for one instruction set. Plain arguments only: these
// units hold no standard-library templates and no inline function of others, since the linker could
// keep the copy that older processors cannot run. Callers have checked the level in
// runtime/base/cpu_features.h.
#pragma once

#include <cstdint>

#include "runtime/kernels/quantize.h"

namespace quire {

void QuantizeBlocksAvx2(const float* x, int32_t blocks, int8_t* q, ActScale* scales);
void QuantizeBlocksAvx512(const float* x, int32_t blocks, int8_t* q, ActScale* scales);

}  // namespace quire
