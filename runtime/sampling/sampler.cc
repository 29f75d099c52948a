#include "runtime/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/log/check.h"
#include "runtime/base/worker_pool.h"
#include "runtime/sampling/counter_rng.h"
#include "runtime/sampling/token_logprobs.h"

// What each case scans: greedy and top_k the groups whose maximum matters; top_p and plain
// temperature one pass of exponentials; masks a copy of the row. Greedy, neutral and "off" take the
// shortest way and compute nothing else.
namespace quire {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// How many nats below the best top_p looks, wider until the mass is there; beyond the last every
// mass is 0.
constexpr float kTopPWidths[] = {4.0f, 8.0f, 16.0f, 87.5f};

// NaN if any group has one; group maxima are never NaN otherwise.
float MaxOf(std::span<const float> group_max) {
  float max = kMinusInfinity;
  for (const float m : group_max) max = m > max || std::isnan(m) ? m : max;
  for (const float m : group_max) {
    if (std::isnan(m)) return m;
  }
  return max;
}

// The row with everything that may not be drawn at minus infinity; the row itself if nothing is
// forbidden.
LogitsRow ApplyMasks(const LogitsRow& raw, const SampleSpec& spec, SampleScratch& scratch) {
  if (spec.banned.empty() && spec.allowed.empty()) return raw;
  std::ranges::copy(raw.values, scratch.edited.begin());
  for (const TokenId banned : spec.banned) {
    const auto id = static_cast<size_t>(banned);
    if (id < scratch.edited.size()) scratch.edited[id] = kMinusInfinity;
  }
  if (!spec.allowed.empty()) {
    for (size_t v = 0; v < scratch.edited.size(); ++v) {
      if ((spec.allowed[v / 32] >> (v % 32) & 1) == 0) scratch.edited[v] = kMinusInfinity;
    }
  }
  GroupMaxima(scratch.edited.data(), raw.vocab_size(), scratch.edited_max.data());
  return {.values = scratch.edited, .group_max = scratch.edited_max};
}

TokenId Greedy(const LogitsRow& row, float max) {
  const auto g =
      static_cast<int32_t>(std::ranges::find(row.group_max, max) - row.group_max.begin());
  return TokenId{g * kLogitGroup + FindFirst(row.group(g), row.group_size(g), max)};
}

void SetMasses(Candidates candidates, ExpScale e, SampleScratch& scratch) {
  for (size_t i = 0; i < candidates.size(); ++i) scratch.values[i] = candidates[i].logit;
  ExpEach(scratch.values.data(), static_cast<int32_t>(candidates.size()), e, scratch.values.data());
  for (size_t i = 0; i < candidates.size(); ++i) candidates[i].mass = scratch.values[i];
}

// No filter is on: the draw is over the whole row, by group and then within one.
TokenId DrawFromRow(const LogitsRow& row, ExpScale e, double u, SampleScratch& scratch) {
  const double target = u * SumExp(row, e, scratch);
  double before = 0;
  int32_t group = 0;
  for (int32_t g = 0; g < row.groups(); ++g) {
    const double sum = scratch.sums[static_cast<size_t>(g)];
    if (sum == 0) continue;
    group = g;
    if (before + sum > target) break;
    before += sum;
  }
  ExpEach(row.group(group), row.group_size(group), e, scratch.values.data());
  int32_t last = 0;
  double sum = before;
  for (int32_t i = 0; i < row.group_size(group); ++i) {
    const float mass = scratch.values[static_cast<size_t>(i)];
    if (mass == 0) continue;
    last = i;
    sum += mass;
    if (sum > target) break;
  }
  return TokenId{group * kLogitGroup + last};
}

Candidates CandidatesWithin(const LogitsRow& row, float nats, ExpScale e, SampleScratch& scratch) {
  const Candidates candidates = CollectCandidates(row, e.max - nats / e.scale, scratch);
  SetMasses(candidates, e, scratch);
  return candidates;
}

// Candidates by ascending id; top_p is on, top_k is off.
Candidates FilterTopP(const LogitsRow& row, float top_p, ExpScale e, SampleScratch& scratch) {
  const double wanted = static_cast<double>(top_p) * SumExp(row, e, scratch);
  Candidates found;
  for (const float width : kTopPWidths) {
    found = CandidatesWithin(row, width, e, scratch);
    if (TotalMass(found) >= wanted) break;
  }
  return KeepUpTo(found, MassCut(CopyForCut(found, scratch), wanted));
}

bool HasTopK(const SamplingParams& params, const LogitsRow& row) {
  return params.top_k > 0 && params.top_k < row.vocab_size();
}

// The set that top_k, top_p and min_p leave, by ascending id; at least one of them is on.
Candidates Filter(const LogitsRow& row, const SamplingParams& params, ExpScale e,
                  SampleScratch& scratch) {
  Candidates kept;
  if (HasTopK(params, row)) {
    kept = CollectBest(row, params.top_k, scratch);
    SetMasses(kept, e, scratch);
    if (params.top_p < 1) {
      const double wanted = static_cast<double>(params.top_p) * TotalMass(kept);
      kept = KeepUpTo(kept, MassCut(CopyForCut(kept, scratch), wanted));
    }
  } else if (params.top_p < 1) {
    kept = FilterTopP(row, params.top_p, e, scratch);
  } else {
    kept = CandidatesWithin(row, 0.01f - std::log(params.min_p), e, scratch);
  }
  return params.min_p > 0 ? KeepAtLeast(kept, params.min_p) : kept;
}

TokenId Draw(const LogitsRow& row, float max, const SampleSpec& spec, SampleScratch& scratch) {
  const SamplingParams& params = *spec.params;
  if (params.greedy()) return Greedy(row, max);
  const double u = UniformAt(params.seed, spec.sequence.output_index, spec.position);
  const ExpScale e{.max = max, .scale = 1.0f / params.temperature};
  const bool filtered = HasTopK(params, row) || params.top_p < 1 || params.min_p > 0;
  if (!filtered) return DrawFromRow(row, e, u, scratch);
  return DrawFrom(Filter(row, params, e, scratch), u);
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  CHECK_GE(options.vocab_size, 1);
  const int32_t workers = options.pool == nullptr ? 1 : options.pool->size();
  for (int32_t i = 0; i < workers; ++i) scratch_.emplace_back(options.vocab_size);
}

void Sampler::Sample(const LogitsView& logits, std::span<const SampleSpec> specs,
                     std::span<Sampled> out) {
  CHECK_EQ(specs.size(), out.size());
  const auto count = static_cast<int32_t>(specs.size());
  const auto run = [&](int32_t begin, int32_t end, SampleScratch& scratch) {
    for (int32_t i = begin; i < end; ++i) {
      SampleOne(logits, specs[static_cast<size_t>(i)], scratch, out[static_cast<size_t>(i)]);
    }
  };
  if (options_.pool == nullptr || count < 2) {
    run(0, count, scratch_[0]);
    return;
  }
  const auto workers = static_cast<int32_t>(scratch_.size());
  options_.pool->Run([&](int32_t worker) {
    const auto [begin, end] = SplitEvenly(count, worker, workers);
    run(begin, end, scratch_[static_cast<size_t>(worker)]);
  });
}

void Sampler::SampleOne(const LogitsView& logits, const SampleSpec& spec, SampleScratch& scratch,
                        Sampled& out) const {
  const auto vocab = static_cast<size_t>(options_.vocab_size);
  const size_t groups = scratch.sums.size();
  const auto index = static_cast<size_t>(spec.logits_row);
  const LogitsRow raw{.values = logits.values.subspan(index * vocab, vocab),
                      .group_max = logits.group_max.subspan(index * groups, groups)};
  out.sequence = spec.sequence;
  out.token = TokenId::kNone;
  out.logprob = 0;
  out.rank = 0;
  out.top_count = 0;
  const float raw_max = MaxOf(raw.group_max);
  if (!std::isfinite(raw_max)) {
    out.outcome = SampleOutcome::kNonFinite;
    return;
  }
  const LogitsRow row = ApplyMasks(raw, spec, scratch);
  const float max = MaxOf(row.group_max);
  if (max == kMinusInfinity) {
    out.outcome = SampleOutcome::kNoAllowedToken;
    return;
  }
  out.outcome = SampleOutcome::kToken;
  out.token = Draw(row, max, spec, scratch);
  FillLogprobs(raw, raw_max, *spec.params, scratch, out);
}

}  // namespace quire
