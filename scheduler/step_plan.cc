#include "scheduler/step_plan.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quire {
namespace {

std::string Name(const SequenceId& id) {
  return absl::StrCat(static_cast<uint64_t>(id.request), ".", id.output_index);
}

std::string Names(std::span<const SequenceId> ids) {
  return absl::StrJoin(
      ids, " ", [](std::string* out, const SequenceId& id) { absl::StrAppend(out, Name(id)); });
}

std::string Blocks(std::span<const BlockId> ids) {
  return absl::StrJoin(ids, " ", [](std::string* out, BlockId id) {
    absl::StrAppend(out, static_cast<int32_t>(id));
  });
}

}  // namespace

// One line per fact; lines of absent facts are left out:
//   3 tokens
//   1.0: 9 + 1, blocks 0, draws
//   2.0: 0 + 2, blocks 1
//   admitted 2.0
std::string StepPlan::DebugString() const {
  std::string out = absl::StrCat(num_tokens, " tokens\n");
  for (const PlannedSeq& seq : seqs) {
    absl::StrAppend(&out, Name(seq.id), ": ", seq.num_computed, " + ", seq.tokens.size(),
                    ", blocks ", Blocks(seq.block_table), seq.num_logits > 0 ? ", draws" : "",
                    seq.num_draws > 1 ? absl::StrCat(" ", seq.num_draws) : "", "\n");
  }
  for (const BlockCopy& copy : copies) {
    absl::StrAppend(&out, "copy ", copy.token_count, " tokens of block ",
                    static_cast<int32_t>(copy.src), " to ", static_cast<int32_t>(copy.dst), "\n");
  }
  if (!admitted.empty()) absl::StrAppend(&out, "admitted ", Names(admitted), "\n");
  if (!preempted.empty()) absl::StrAppend(&out, "preempted ", Names(preempted), "\n");
  if (!deferred.empty()) absl::StrAppend(&out, "deferred ", Names(deferred), "\n");
  return out;
}

}  // namespace quire
