// The gate of a SwiGLU feed-forward network. Pure, elementwise; any thread; same bits on every
// instruction set.
#pragma once

#include <cstdint>

namespace quire {

// out[i] = gate[i] / (1 + exp(-gate[i])) * up[i], i < count. out may be gate or up. NaN and
// infinity pass through.
void SwiGlu(const float* gate, const float* up, int32_t count, float* out);

}  // namespace quire
