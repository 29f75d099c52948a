// Which sequences of a step have their leading whole chunks in the same physical blocks, so that
// one item can read these for all of them. Built by the engine thread in storage sized at
// construction; a step that shares nothing costs one sort of its long sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/step_batch.h"

namespace quire {

struct CascadeGroup {
  int32_t member_begin, member_count;  // into members(), at least 2
  int32_t chunks;                      // shared by all of them, at least 1
};

class AttentionCascade {
 public:
  // Sequences of more than `max_tokens` rows in the step fill query tiles alone and stay out.
  AttentionCascade(int32_t max_seqs, int32_t max_tokens);

  void Build(const StepBatch& batch);

  std::span<const CascadeGroup> groups() const { return groups_; }
  std::span<const int32_t> members() const { return members_; }  // indices of sequences

 private:
  struct Candidate {
    const BlockId* table;
    int32_t seq;
    int32_t chunks;  // that all its rows see in full
  };
  using Run = std::span<const Candidate>;  // sorted by table
  static int32_t SharedChunks(const Candidate& a, const Candidate& b, int32_t from);
  static Run FirstRun(Run candidates, int32_t depth);
  static int64_t Saved(Run run, int32_t depth);
  void Group(Run run, int32_t depth);

  int32_t max_tokens_;
  std::vector<Candidate> candidates_;
  std::vector<int32_t> members_;
  std::vector<CascadeGroup> groups_;
};

}  // namespace quire
