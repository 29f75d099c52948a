// A stand-in for the sampler in tests that link no runtime room: argmax, or argmax of logits plus
// noise keyed as the real one is, by (seed, output index, position). Pure.
#pragma once

#include <span>
#include <vector>

#include "runtime/sampling/sample_spec.h"
#include "runtime/step_batch.h"

namespace quire {

Sampled FakeDraw(std::span<const float> logits, const SampleSpec& spec);
// One draw per spec; out is overwritten.
void FakeDrawAll(const LogitsView& logits, int32_t vocab_size, std::span<const SampleSpec> specs,
                 std::vector<Sampled>& out);

}  // namespace quire
