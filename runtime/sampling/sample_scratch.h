// Working memory of one worker while it samples, and the view of one row of logits. Sized at start.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernels/logit_scan.h"
#include "runtime/sampling/logits_filter.h"
#include "runtime/step_batch.h"

namespace quire {

static_assert(kScanGroup == kLogitGroup);

struct LogitsRow {
  std::span<const float> values;     // [vocab_size]
  std::span<const float> group_max;  // [groups]

  int32_t vocab_size() const { return static_cast<int32_t>(values.size()); }
  int32_t groups() const { return static_cast<int32_t>(group_max.size()); }
  int32_t group_size(int32_t g) const {
    const int32_t left = vocab_size() - g * kLogitGroup;
    return left < kLogitGroup ? left : kLogitGroup;
  }
  const float* group(int32_t g) const { return values.data() + int64_t{g} * kLogitGroup; }
};

struct SampleScratch {
  explicit SampleScratch(int32_t vocab_size);

  std::vector<float> edited, edited_max;  // a row with masks applied, and its group maxima
  std::vector<float> sums, order;         // [groups]
  std::vector<int32_t> ids;               // [vocab_size + pad]
  std::vector<float> values;              // [vocab_size + pad]
  std::vector<Candidate> candidates,
      work;  // [vocab_size]; by ascending id; a copy that is reordered
};

// The candidates with logit >= threshold, ascending by id, mass not set.
Candidates CollectCandidates(const LogitsRow& row, float threshold, SampleScratch& scratch);
// Copies to scratch.work, for the cuts of logits_filter.h.
Candidates CopyForCut(Candidates candidates, SampleScratch& scratch);
// The k best, ascending by id: the k-th largest group maximum bounds the k-th logit from below.
Candidates CollectBest(const LogitsRow& row, int32_t k, SampleScratch& scratch);
// Sum of e over the row: groups in order; scratch.sums holds the sum of each.
double SumExp(const LogitsRow& row, ExpScale e, SampleScratch& scratch);

}  // namespace quire
