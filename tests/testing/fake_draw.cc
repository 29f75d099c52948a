#include "tests/testing/fake_draw.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/testing/mix.h"

namespace quire {

Sampled FakeDraw(std::span<const float> logits, const SampleSpec& spec) {
  Sampled out{};
  out.sequence = spec.sequence;
  const uint64_t key =
      Mix(Mix(spec.params->seed, static_cast<uint64_t>(spec.sequence.output_index)),
          static_cast<uint64_t>(spec.position));
  float best = -std::numeric_limits<float>::infinity();
  for (size_t v = 0; v < logits.size(); ++v) {
    if (std::isnan(logits[v])) {
      out.token = TokenId::kNone;
      out.outcome = SampleOutcome::kNonFinite;
      return out;
    }
    const TokenId token{static_cast<int32_t>(v)};
    if (std::ranges::find(spec.banned, token) != spec.banned.end()) continue;
    const float noise =
        spec.params->greedy() ? 0.0f : static_cast<float>(Mix(key, v) >> 44) * 0x1p-18f;
    if (logits[v] + noise > best) {
      best = logits[v] + noise;
      out.token = token;
      out.logprob = logits[v];
    }
  }
  if (out.token == TokenId::kNone) out.outcome = SampleOutcome::kNoAllowedToken;
  return out;
}

void FakeDrawAll(const LogitsView& logits, int32_t vocab_size, std::span<const SampleSpec> specs,
                 std::vector<Sampled>& out) {
  out.clear();
  const auto vocab = static_cast<size_t>(vocab_size);
  for (const SampleSpec& spec : specs) {
    out.push_back(
        FakeDraw(logits.values.subspan(static_cast<size_t>(spec.logits_row) * vocab, vocab), spec));
  }
}

}  // namespace quire
