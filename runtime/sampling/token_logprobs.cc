#include "runtime/sampling/token_logprobs.h"

#include <algorithm>
#include <cmath>

namespace quire {
namespace {

// 1 + how many tokens are likelier; of equal ones the lower id is.
int32_t RankOf(const LogitsRow& raw, int32_t token) {
  const float value = raw.values[static_cast<size_t>(token)];
  int32_t rank = 1;
  for (int32_t g = 0; g < raw.groups(); ++g) {
    if (!(raw.group_max[static_cast<size_t>(g)] >= value)) continue;
    const int32_t begin = g * kLogitGroup;
    const int32_t before = std::clamp(token - begin, 0, raw.group_size(g));
    const CompareCounts all = CountAgainst(raw.group(g), raw.group_size(g), value);
    rank += all.greater;
    if (all.equal > 0) rank += CountAgainst(raw.group(g), before, value).equal;
  }
  return rank;
}

}  // namespace

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| <
// 0.172.
double CanonicalLog(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double series = 0;
  for (int n = 23; n >= 1; n -= 2) series = series * s2 + 1.0 / n;
  return exponent * 0.69314718055994531 + 2 * s * series;
}

void FillLogprobs(const LogitsRow& raw, float max, const SamplingParams& params,
                  SampleScratch& scratch, Sampled& out) {
  if (!params.logprobs && params.top_logprobs == 0) return;
  const double log_sum = CanonicalLog(SumExp(raw, {.max = max, .scale = 1}, scratch));
  const auto logprob = [&](float logit) {
    return static_cast<float>(static_cast<double>(logit) - static_cast<double>(max) - log_sum);
  };
  if (params.logprobs) {
    out.logprob = logprob(raw.values[static_cast<size_t>(out.token)]);
    out.rank = RankOf(raw, static_cast<int32_t>(out.token));
  }
  if (params.top_logprobs == 0) return;
  const Candidates best = CollectBest(raw, std::min(params.top_logprobs, kMaxTopLogprobs), scratch);
  std::ranges::sort(best, Better);
  out.top_count = static_cast<int32_t>(best.size());
  for (size_t i = 0; i < best.size(); ++i)
    out.top[i] = {TokenId{best[i].id}, logprob(best[i].logit)};
}

}  // namespace quire
