#include "runtime/sampling/sample_scratch.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace quire {

SampleScratch::SampleScratch(int32_t vocab_size) {
  const auto vocab = static_cast<size_t>(vocab_size);
  const size_t groups = (vocab + kLogitGroup - 1) / kLogitGroup;
  edited.resize(vocab);
  edited_max.resize(groups);
  sums.resize(groups);
  order.resize(groups);
  ids.resize(vocab + kScanPad);
  values.resize(vocab + kScanPad);
  candidates.resize(vocab);
  work.resize(vocab);
}

Candidates CollectCandidates(const LogitsRow& row, float threshold, SampleScratch& scratch) {
  // A masked token is at minus infinity and never a candidate.
  threshold = std::max(threshold, std::numeric_limits<float>::lowest());
  int32_t count = 0;
  for (int32_t g = 0; g < row.groups(); ++g) {
    if (!(row.group_max[static_cast<size_t>(g)] >= threshold)) continue;
    count += CollectAtLeast(row.group(g), row.group_size(g), threshold, g * kLogitGroup,
                            {scratch.ids.data() + count, scratch.values.data() + count});
  }
  for (int32_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    scratch.candidates[at] = {.logit = scratch.values[at], .id = scratch.ids[at], .mass = 0};
  }
  return Candidates(scratch.candidates).first(static_cast<size_t>(count));
}

Candidates CopyForCut(Candidates candidates, SampleScratch& scratch) {
  std::ranges::copy(candidates, scratch.work.begin());
  return Candidates(scratch.work).first(candidates.size());
}

Candidates CollectBest(const LogitsRow& row, int32_t k, SampleScratch& scratch) {
  float threshold = std::numeric_limits<float>::lowest();
  if (k <= row.groups()) {
    std::ranges::copy(row.group_max, scratch.order.begin());
    const auto kth = scratch.order.begin() + (k - 1);
    std::ranges::nth_element(scratch.order, kth, std::greater<>());
    threshold = *kth;
  }
  const Candidates found = CollectCandidates(row, threshold, scratch);
  if (static_cast<int32_t>(found.size()) <= k) return found;
  return KeepUpTo(found, RankCut(CopyForCut(found, scratch), k));
}

double SumExp(const LogitsRow& row, ExpScale e, SampleScratch& scratch) {
  ExpSumGroups(row.values.data(), row.vocab_size(), e, scratch.sums.data());
  double sum = 0;
  for (const float group : scratch.sums) sum += group;
  return sum;
}

}  // namespace quire
