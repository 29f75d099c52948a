// The forward pass of the llama family: RMSNorm, rotary positions, grouped-query attention, SwiGLU.
// Called by every kernel worker inside one WorkerPool::Run.
#pragma once

#include "runtime/model/step_profile.h"
#include "runtime/model/transformer.h"

namespace quire {

// `profile` is null, or worker 0's.
void LlamaStep(const Step& step, int32_t worker, StepProfile* profile);

}  // namespace quire
