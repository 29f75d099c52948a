// Microseconds per sequence of sampling one row of 49152 logits, by kind of request.
#include <benchmark/benchmark.h>

#include <vector>

#include "runtime/kernels/logit_scan.h"
#include "runtime/sampling/sampler.h"

namespace quire {
namespace {

constexpr int32_t kVocab = 49152;

// Bell-shaped logits with a few that stand out, as a language model's are. A flat row has none: the
// worst case.
std::vector<float> Logits(bool flat) {
  std::vector<float> row(kVocab);
  uint32_t state = 1;
  for (float& x : row) {
    x = 0;
    for (int i = 0; i < 4; ++i) {
      state = state * 1664525u + 1013904223u;
      x += static_cast<float>(state >> 8) * 0x1p-22f - 2.0f;
    }
  }
  for (size_t i = 0; i < 30 && !flat; ++i) row[i * 1601] += 14.0f - 0.2f * static_cast<float>(i);
  return row;
}

void BM_Sample(benchmark::State& state, const SamplingParams& params, bool flat = false) {
  const std::vector<float> row = Logits(flat);
  std::vector<float> maxima(kVocab / kScanGroup);
  GroupMaxima(row.data(), kVocab, maxima.data());
  Sampler sampler({.vocab_size = kVocab});
  SampleSpec spec;
  spec.params = &params;
  Sampled out{};
  for (auto _ : state) {
    ++spec.position;
    sampler.Sample({.values = row, .group_max = maxima}, {&spec, 1}, {&out, 1});
    benchmark::DoNotOptimize(out.token);
  }
}

BENCHMARK_CAPTURE(BM_Sample, greedy, SamplingParams{.temperature = 0});
BENCHMARK_CAPTURE(BM_Sample, top_k_40, SamplingParams{.top_k = 40});
BENCHMARK_CAPTURE(BM_Sample, top_k_40_top_p, SamplingParams{.top_k = 40, .top_p = 0.95f});
BENCHMARK_CAPTURE(BM_Sample, top_p, SamplingParams{.top_p = 0.95f});
BENCHMARK_CAPTURE(BM_Sample, top_p_hot, SamplingParams{.temperature = 1.5f, .top_p = 0.95f});
BENCHMARK_CAPTURE(BM_Sample, top_p_flat, SamplingParams{.top_p = 0.95f}, true);
BENCHMARK_CAPTURE(BM_Sample, min_p, SamplingParams{.min_p = 0.05f});
BENCHMARK_CAPTURE(BM_Sample, plain, SamplingParams{});
BENCHMARK_CAPTURE(BM_Sample, greedy_top_logprobs,
                  SamplingParams{.temperature = 0, .logprobs = true, .top_logprobs = 5});

}  // namespace
}  // namespace quire
