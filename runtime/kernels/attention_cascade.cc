// Sorted by block table, sequences that share a prefix are neighbours, and what a run of them
// shares is what its first and its last share. A run is one group or several deeper ones, whatever
// saves more chunk reads; one level only, so that a row takes its state over once.
#include "runtime/kernels/attention_cascade.h"

#include <algorithm>

#include "runtime/kernels/attention_plan.h"

namespace quire {

AttentionCascade::AttentionCascade(int32_t max_seqs, int32_t max_tokens) : max_tokens_(max_tokens) {
  candidates_.reserve(max_seqs);
  members_.reserve(max_seqs);
  groups_.reserve(max_seqs / 2);
}

int32_t AttentionCascade::SharedChunks(const Candidate& a, const Candidate& b, int32_t from) {
  const int32_t most = std::min(a.chunks, b.chunks);
  const auto first_difference =
      std::mismatch(a.table + from * kChunkTiles, a.table + most * kChunkTiles,
                    b.table + from * kChunkTiles)
          .first;
  return static_cast<int32_t>(first_difference - a.table) / kChunkTiles;
}

// The leading candidates whose chunk `depth` is the same.
AttentionCascade::Run AttentionCascade::FirstRun(Run candidates, int32_t depth) {
  size_t count = 1;
  while (count < candidates.size() && SharedChunks(candidates[0], candidates[count], depth) > depth)
    ++count;
  return candidates.first(count);
}

// Chunk reads that the best grouping of a run saves, whose members agree before `depth`.
int64_t AttentionCascade::Saved(Run run, int32_t depth) {
  if (run.size() < 2) return 0;
  const int32_t shared = SharedChunks(run.front(), run.back(), depth);
  int64_t apart = 0;
  for (Run rest = run, next; !rest.empty(); rest = rest.subspan(next.size())) {
    next = FirstRun(rest, shared);
    apart += Saved(next, shared + 1);
  }
  return std::max(apart, int64_t{shared} * static_cast<int64_t>(run.size() - 1));
}

void AttentionCascade::Group(Run run, int32_t depth) {
  if (run.size() < 2) return;
  const int32_t shared = SharedChunks(run.front(), run.back(), depth);
  if (shared > 0 && Saved(run, depth) == int64_t{shared} * static_cast<int64_t>(run.size() - 1)) {
    groups_.push_back({.member_begin = static_cast<int32_t>(members_.size()),
                       .member_count = static_cast<int32_t>(run.size()),
                       .chunks = shared});
    for (const Candidate& candidate : run) members_.push_back(candidate.seq);
    return;
  }
  for (Run rest = run, next; !rest.empty(); rest = rest.subspan(next.size())) {
    next = FirstRun(rest, shared);
    Group(next, shared + 1);
  }
}

void AttentionCascade::Build(const StepBatch& batch) {
  candidates_.clear();
  members_.clear();
  groups_.clear();
  for (size_t i = 0; i < batch.seqs.size(); ++i) {
    const SeqSpan& seq = batch.seqs[i];
    const int32_t chunks = (seq.kv_len - seq.row_count + 1) / (kChunkTiles * kBlockTokens);
    if (chunks < 1 || seq.row_count < 1 || seq.row_count > max_tokens_) continue;
    if (seq.window_tokens > 0) continue;  // it may not see them all
    candidates_.push_back(
        {batch.block_ids.data() + seq.table_begin, static_cast<int32_t>(i), chunks});
  }
  if (candidates_.size() < 2) return;
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    const int32_t most = std::min(a.chunks, b.chunks) * kChunkTiles;
    for (int32_t i = 0; i < most; ++i) {
      if (a.table[i] != b.table[i]) return a.table[i] < b.table[i];
    }
    return a.chunks != b.chunks ? a.chunks < b.chunks : a.seq < b.seq;
  });
  for (Run rest = candidates_, next; !rest.empty(); rest = rest.subspan(next.size())) {
    next = FirstRun(rest, 0);
    Group(next, 1);
  }
}

}  // namespace quire
