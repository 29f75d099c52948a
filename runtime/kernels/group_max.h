// The maximum of a group of logits, kept beside them so that sampling need not look at every logit. Pure; any
// thread; same bits on every instruction set.
#pragma once

#include <cstdint>

namespace quire {

// The largest of x[0, count), or NaN if any of them is NaN. count >= 1.
float MaxOrNan(const float* x, int32_t count);

}  // namespace quire
