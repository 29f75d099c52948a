#include "tests/property/sim/solo.h"

#include <algorithm>

#include "runtime/sampling/sample_spec.h"
#include "tests/testing/fake_draw.h"

namespace quire::sim {
namespace {

SoloOutput RunOutput(const Request& request, int32_t index, uint64_t chain,
                     const SoloOptions& options) {
  SoloOutput out;
  const StopRules& rules = request.stop;
  const auto prompt = static_cast<int32_t>(request.prompt.size());
  const int32_t longest = std::min(rules.max_tokens, options.limit_tokens - prompt);
  std::vector<float> logits(kVocab);
  TokenId last = request.prompt.back();
  while (out.finish == FinishReason::kNone) {
    const auto count = static_cast<int32_t>(out.tokens.size());
    const int32_t position = prompt + count;
    for (int32_t v = 0; v < kVocab; ++v)
      logits[static_cast<size_t>(v)] = FakeModelRunner::Logit(chain, v);
    SampleSpec spec{.sequence = {request.id, index},
                    .logits_row = 0,
                    .position = position,
                    .params = &request.sampling,
                    .history = {},
                    .banned = {},
                    .allowed = {}};
    if (count < rules.min_tokens) spec.banned = rules.eos_ids;
    if (options.nan_rows && IsNanRow({.step = 0, .token = last, .position = position - 1})) {
      out.finish = FinishReason::kError;
      return out;
    }
    last = FakeDraw(logits, spec).token;
    out.tokens.push_back(last);
    if (std::ranges::find(rules.eos_ids, last) != rules.eos_ids.end()) {
      out.finish = FinishReason::kStop;
    } else if (count + 1 == longest) {
      out.finish = FinishReason::kLength;
    }
    chain = FakeModelRunner::Extend(chain, last, position);
  }
  return out;
}

}  // namespace

std::vector<SoloOutput> RunAlone(const Request& request, const SoloOptions& options) {
  uint64_t chain = FakeModelRunner::Root(request.kv.window_tokens, request.kv.sink_tokens);
  for (size_t p = 0; p < request.prompt.size(); ++p) {
    chain = FakeModelRunner::Extend(chain, request.prompt[p], static_cast<int32_t>(p));
  }
  std::vector<SoloOutput> outputs;
  for (int32_t i = 0; i < request.num_sequences; ++i) {
    outputs.push_back(RunOutput(request, i, chain, options));
  }
  return outputs;
}

}  // namespace quire::sim
