#include "scheduler/step_planner.h"

#include <algorithm>
#include <tuple>

#include "absl/log/check.h"
#include "scheduler/step_budget.h"

// Why every step with a runnable sequence makes progress: the oldest active sequence is granted at
// least one token, and may take the blocks of all others. Capacity (capacity.h) was checked when it
// was added, so alone it always fits.
namespace quire {

StepShape ShapeOf(const StepPlan& plan) {
  StepShape shape;
  for (const PlannedSeq& seq : plan.seqs) {
    const auto rows = static_cast<int32_t>(seq.tokens.size());
    (rows == 1 ? shape.decode_rows : shape.prefill_rows) += rows;
    // The middle row stands for all.
    shape.kv_tokens += int64_t{rows} * (seq.num_computed + rows / 2);
  }
  return shape;
}

StepPlanner::StepPlanner(const PlannerOptions& options, BlockPool& pool, WaitingQueue& waiting,
                         RunningSet& running, const StepPacer& pacer)
    : options_(options),
      waiting_(waiting),
      running_(running),
      blocks_(pool, waiting, running),
      pacer_(pacer) {
  const auto seqs = static_cast<size_t>(options.max_running);
  grants_.reserve(seqs);
  candidates_.reserve(seqs);
  uncomputed_.reserve(seqs);
  shares_.reserve(seqs);
  planned_.reserve(seqs);
  admitted_.reserve(seqs);
}

void StepPlanner::Clear() {
  grants_.clear();
  planned_.clear();
  admitted_.clear();
  blocks_.Clear();
  plan_ = {};
}

const StepPlan& StepPlanner::Plan(MonotonicTime now) {
  Clear();
  GrantRunning();
  if (blocks_.preempted().empty()) Admit(now);
  WritePlan();
  return plan_;
}

// Decodes of running sequences are known; of prompts, the first one's context stands for all.
void StepPlanner::ChooseBudget() {
  StepShape decodes;
  int32_t context = -1;
  for (const Sequence* sequence : candidates_) {
    if (sequence->uncomputed() == 1) {
      ++decodes.decode_rows;
      decodes.kv_tokens += sequence->num_computed;
    } else if (context < 0) {
      context = sequence->num_computed;
    }
  }
  budget_ = pacer_.Budget(decodes, std::max(0, context));
}

void StepPlanner::GrantRunning() {
  candidates_.clear();
  uncomputed_.clear();
  for (Sequence* sequence : running_.items()) {
    if (sequence->paused) continue;
    if (static_cast<int32_t>(candidates_.size()) == options_.max_running) break;
    candidates_.push_back(sequence);
    uncomputed_.push_back(sequence->uncomputed());
  }
  ChooseBudget();
  shares_.resize(candidates_.size());
  ShareBudget(uncomputed_, budget_, shares_);
  // Oldest first: a victim is younger than the one it makes room for, so it has no grant yet.
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (!candidates_[i]->running) break;  // preempted just now, and so are all behind it
    const int32_t tokens = blocks_.GrowFor(*candidates_[i], shares_[i]);
    CHECK(tokens > 0 || i > 0) << "the oldest sequence cannot advance";
    if (tokens > 0) grants_.push_back({candidates_[i], tokens});
  }
}

void StepPlanner::Admit(MonotonicTime now) {
  int32_t budget = budget_;
  for (const Grant& grant : grants_) budget -= grant.tokens;
  int32_t slots = options_.max_running - running_.num_active();
  blocks_.BeginAdmission();
  for (size_t i = 0; budget > 0 && slots > 0 && i < waiting_.items().size();) {
    Sequence& head = *waiting_.items()[i];
    if (head.paused) {
      ++i;
      continue;
    }
    if (!blocks_.MakeRoomFor(head)) break;  // first come, first served
    // MakeRoomFor may have put paused sequences into the queue before the head.
    waiting_.Remove(head);
    running_.Insert(head);
    if (!head.started) head.first_scheduled = now;
    head.started = true;
    admitted_.push_back(head.id);
    const int32_t tokens = std::min(budget, head.uncomputed());
    blocks_.Start(head, tokens);
    grants_.push_back({&head, tokens});
    budget -= tokens;
    --slots;
  }
}

void StepPlanner::WritePlan() {
  std::ranges::sort(grants_, [](const Grant& a, const Grant& b) {
    return std::tuple(a.tokens > 1, a.sequence->order) <
           std::tuple(b.tokens > 1, b.sequence->order);
  });
  for (const auto& [sequence, tokens] : grants_) {
    const std::span<const TokenId> known = sequence->tokens;
    const auto begin = static_cast<size_t>(sequence->num_computed);
    planned_.push_back({.id = sequence->id,
                        .num_computed = sequence->num_computed,
                        .tokens = known.subspan(begin, static_cast<size_t>(tokens)),
                        .history = known,
                        .block_table = sequence->blocks.ids(),
                        .num_logits = tokens == sequence->uncomputed() ? 1 : 0,
                        .num_prompt = sequence->num_prompt(),
                        .request = sequence->request});
    plan_.num_tokens += tokens;
  }
  plan_.seqs = planned_;
  plan_.admitted = admitted_;
  plan_.preempted = blocks_.preempted();
}

}  // namespace quire
