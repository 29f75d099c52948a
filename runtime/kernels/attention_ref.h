// Attention as its formula, in plain f32 loops that read K and V through the same pool and block
// tables as the fused kernel: what tests compare with. Any thread; owns nothing, allocates.
#pragma once

#include "runtime/kernels/attention.h"

namespace quire {

// All rows of the batch, one layer.
void AttentionReference(const AttentionShape& shape, const StepBatch& batch, const KvLayerView& kv,
                        const AttentionIo& io);

}  // namespace quire
