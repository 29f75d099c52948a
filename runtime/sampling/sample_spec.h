// What to draw in a step, and what was drawn. Built beside the StepBatch by the engine thread;
// views live until the next Build.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/base/ids.h"
#include "runtime/sampling/sampling_params.h"

namespace quire {

struct SampleSpec {
  SequenceId sequence;
  int32_t logits_row = 0;
  int32_t position = 0;  // of the token to draw; RNG key = (seed, output_index, position)
  const SamplingParams* params = nullptr;  // owned by the Request, which outlives the step
  std::span<const TokenId> history;        // prompt and output before position
  std::span<const TokenId>
      banned;  // never drawn here (EOS and stop ids below min_tokens); few, any order
  std::span<const uint32_t> allowed;  // bit per token, [ceil(vocab_size / 32)]; empty = all
};

enum class SampleOutcome : uint8_t {
  kToken,
  kNonFinite,
  kNoAllowedToken
};  // the last two end this request only

struct TopLogprob {
  TokenId token = TokenId::kNone;
  float logprob = 0;
};

struct Sampled {
  SequenceId sequence;
  TokenId token = TokenId::kNone;
  float logprob = 0;  // natural log of the raw softmax; set if params->logprobs
  int32_t rank = 0;   // 1 = likeliest; set if params->logprobs
  SampleOutcome outcome = SampleOutcome::kToken;
  int32_t top_count = 0;  // entries of top in use, likeliest first
  std::array<TopLogprob, kMaxTopLogprobs> top;
};

}  // namespace quire
