// Draws one token per SampleSpec from the logits of a step: masks, temperature, top_k, top_p,
// min_p, one draw over the kept ids ascending. A result is a function of its row and its spec
// alone, with the same bits on every instruction set, worker count and batch. Owner thread of the
// pool only; allocates nothing after construction; no full sort.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/sampling/sample_scratch.h"
#include "runtime/sampling/sample_spec.h"
#include "runtime/step_batch.h"

namespace quire {

class WorkerPool;

struct SamplerOptions {
  int32_t vocab_size = 0;
  WorkerPool* pool = nullptr;  // sequences are shared among its workers; nullptr: the caller does
                               // it all. Outlives it.
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  // out[i] is drawn for specs[i]; out.size() == specs.size().
  void Sample(const LogitsView& logits, std::span<const SampleSpec> specs, std::span<Sampled> out);

 private:
  void SampleOne(const LogitsView& logits, const SampleSpec& spec, SampleScratch& scratch,
                 Sampled& out) const;

  SamplerOptions options_;
  std::vector<SampleScratch> scratch_;  // one per worker
};

}  // namespace quire
