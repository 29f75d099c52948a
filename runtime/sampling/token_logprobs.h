// Logprob, rank and alternatives of a drawn token, from the raw logits: no sampling parameter
// changes them. Pure; any thread; allocates nothing.
#pragma once

#include "runtime/sampling/sample_scratch.h"
#include "runtime/sampling/sample_spec.h"

namespace quire {

// Fills out.logprob, out.rank and out.top for out.token as out.params asks. `raw` is finite at its
// maximum `max`.
void FillLogprobs(const LogitsRow& raw, float max, const SamplingParams& params,
                  SampleScratch& scratch, Sampled& out);

// Natural logarithm of x >= 1 with the same bits on every processor (libm chooses among variants at
// run time).
double CanonicalLog(double x);

}  // namespace quire
