// Attention as its formula, in plain loops in double that read K and V through the same pool and
// block tables as the fused kernel and ask of every pair of positions whether it is visible: what
// tests compare with. Any thread; owns nothing, allocates.
#pragma once

#include "runtime/kernels/attention.h"

namespace quire {

struct AttentionReferenceInput {
  const AttentionShape& shape;
  const AttentionSpec& spec;
  int32_t layer = 0;
  const StepBatch& batch;
  AttentionFacts facts = {};
};

// Whether the row at position i of sequence `seq` of the batch sees its token j.
bool VisibleInReference(const AttentionReferenceInput& in, int32_t seq, int32_t i, int32_t j);

// All rows of the batch, one layer.
void AttentionReference(const AttentionReferenceInput& in, const KvLayerView& kv,
                        const AttentionIo& io);

}  // namespace quire
