// Rows of logits, specs over them, and the definition of a draw by full sorting in f64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/kernels/logit_scan.h"
#include "runtime/sampling/sampler.h"
#include "tests/testing/mix.h"

namespace quire {

inline constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

class SamplingCase {
 public:
  explicit SamplingCase(int32_t vocab_size)
      : vocab_(vocab_size), sampler_({.vocab_size = vocab_size}) {}

  // Appends a row and returns its index.
  int32_t AddRow(std::vector<float> row) {
    values_.insert(values_.end(), row.begin(), row.end());
    const size_t groups = static_cast<size_t>((vocab_ + kLogitGroup - 1) / kLogitGroup);
    std::vector<float> maxima(groups);
    GroupMaxima(row.data(), vocab_, maxima.data());
    group_max_.insert(group_max_.end(), maxima.begin(), maxima.end());
    return rows_++;
  }
  LogitsView view() const { return {.values = values_, .group_max = group_max_}; }
  std::span<const float> row(int32_t r) const {
    return std::span<const float>(values_).subspan(
        static_cast<size_t>(r) * static_cast<size_t>(vocab_), static_cast<size_t>(vocab_));
  }
  int32_t vocab_size() const { return vocab_; }
  Sampled Draw(const SampleSpec& spec) {
    Sampled out{};
    sampler_.Sample(view(), {&spec, 1}, {&out, 1});
    return out;
  }

 private:
  int32_t vocab_;
  int32_t rows_ = 0;
  std::vector<float> values_, group_max_;
  Sampler sampler_;
};

inline std::vector<float> RandomRow(uint64_t seed, int32_t vocab_size, float spread = 4.0f) {
  TestRandom random(seed);
  std::vector<float> row(static_cast<size_t>(vocab_size));
  for (float& x : row) {
    // Sum of uniforms: bell-shaped, as logits are.
    x = spread *
        static_cast<float>(random.Unit() + random.Unit() + random.Unit() + random.Unit() - 2.0);
  }
  return row;
}

inline SampleSpec MakeSpec(const SamplingParams& params, int32_t row = 0, int32_t position = 5) {
  SampleSpec spec;
  spec.sequence = {RequestId{1}, 0};
  spec.logits_row = row;
  spec.position = position;
  spec.params = &params;
  return spec;
}

struct ReferenceToken {
  int32_t id;
  double mass;  // share of the kept set
};

// The kept set ascending by id, by sorting everything. `slack` reports how near a cut-off is to
// flipping.
inline std::vector<ReferenceToken> ReferenceKept(std::span<const float> logits,
                                                 const SamplingParams& params, double* slack) {
  *slack = 1;
  std::vector<ReferenceToken> all;
  for (size_t i = 0; i < logits.size(); ++i) all.push_back({static_cast<int32_t>(i), logits[i]});
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.mass > b.mass; });
  const double best = all[0].mass;
  if (params.top_k > 0 && params.top_k < static_cast<int32_t>(all.size()))
    all.resize(static_cast<size_t>(params.top_k));
  double total = 0;
  for (auto& token : all)
    total += token.mass = std::exp((token.mass - best) / static_cast<double>(params.temperature));
  if (params.top_p < 1) {
    size_t count = 0;
    double sum = 0;
    while (count < all.size() && sum < static_cast<double>(params.top_p) * total) {
      sum += all[count++].mass;
      *slack = std::min(*slack, std::abs(sum / total - static_cast<double>(params.top_p)));
    }
    all.resize(count);
  }
  std::erase_if(all, [&](const auto& token) {
    const bool best = token.mass == 1;  // exact in both arithmetics
    if (params.min_p > 0 && !best)
      *slack = std::min(*slack, std::abs(token.mass - static_cast<double>(params.min_p)));
    return token.mass < static_cast<double>(params.min_p);
  });
  std::ranges::sort(all, {}, &ReferenceToken::id);
  total = 0;
  for (const auto& token : all) total += token.mass;
  for (auto& token : all) token.mass /= total;
  return all;
}

}  // namespace quire
