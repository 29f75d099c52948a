#include "scheduler/step_planner.h"

#include <algorithm>
#include <tuple>

#include "absl/log/check.h"
#include "scheduler/step_budget.h"

// Why every step with a runnable sequence makes progress:
// - The oldest active sequence is granted at least one token, and may take the blocks of all
// others. Capacity
//   (capacity.h) was checked when it was added, so alone it always fits.
// - A younger one that lacks a block and finds no younger victim waits with what it holds: no work
// is thrown away,
//   and whoever is older can still take its blocks.
// - Admission asks for room for all known tokens and one more, beside the room that running
// sequences lack for
//   theirs: so a prompt, once begun, is not starved of blocks by a later one.
namespace quire {

StepPlanner::StepPlanner(const PlannerOptions& options, BlockPool& pool, WaitingQueue& waiting,
                         RunningSet& running)
    : options_(options), pool_(pool), waiting_(waiting), running_(running) {
  const auto seqs = static_cast<size_t>(options.max_running);
  grants_.reserve(seqs);
  candidates_.reserve(seqs);
  uncomputed_.reserve(seqs);
  shares_.reserve(seqs);
  planned_.reserve(seqs);
  admitted_.reserve(seqs);
  preempted_.reserve(static_cast<size_t>(pool.total()));  // each victim holds a block
}

void StepPlanner::Clear() {
  grants_.clear();
  planned_.clear();
  admitted_.clear();
  preempted_.clear();
  plan_ = {};
}

const StepPlan& StepPlanner::Plan(MonotonicTime now) {
  Clear();
  GrantRunning();
  if (preempted_.empty()) Admit(now);
  WritePlan();
  return plan_;
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
  shares_.resize(candidates_.size());
  ShareBudget(uncomputed_, options_.step_tokens, shares_);
  // Oldest first: a victim is younger than the one it makes room for, so it has no grant yet.
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (!candidates_[i]->running) break;  // preempted just now, and so are all behind it
    const int32_t tokens = GrowFor(*candidates_[i], shares_[i]);
    CHECK(tokens > 0 || i > 0) << "the oldest sequence cannot advance";
    if (tokens > 0) grants_.push_back({candidates_[i], tokens});
  }
}

// Makes room for up to `tokens` more tokens of a running sequence; returns how many have blocks
// now.
int32_t StepPlanner::GrowFor(Sequence& sequence, int32_t tokens) {
  const int32_t end = sequence.num_computed + tokens;
  while (sequence.blocks.Missing(end) > pool_.num_free()) {
    Sequence* victim = running_.VictimFor(sequence);
    if (victim == nullptr) {
      const int32_t holds = (sequence.blocks.size() + pool_.num_free()) * kBlockTokens;
      tokens = std::max(0, std::min(tokens, holds - sequence.num_computed));
      break;
    }
    Preempt(*victim);
  }
  if (tokens > 0) sequence.blocks.Grow(sequence.num_computed + tokens);
  return tokens;
}

void StepPlanner::Preempt(Sequence& victim) {
  preempted_.push_back(victim.id);
  running_.Remove(victim);
  victim.Preempt();
  waiting_.Insert(victim);
}

void StepPlanner::Admit(MonotonicTime now) {
  int32_t budget = options_.step_tokens;
  for (const Grant& grant : grants_) budget -= grant.tokens;
  int32_t slots = options_.max_running - running_.num_active();
  int32_t spoken_for = 0;  // blocks that running sequences lack for tokens they already have
  for (const Sequence* sequence : running_.items()) {
    if (!sequence->paused) spoken_for += sequence->MissingBlocks();
  }
  for (size_t i = 0; budget > 0 && slots > 0 && i < waiting_.items().size();) {
    Sequence& head = *waiting_.items()[i];
    if (head.paused) {
      ++i;
      continue;
    }
    const int32_t missing = head.MissingBlocks();
    if (!MakeRoom(missing + spoken_for)) break;  // first come, first served
    // MakeRoom may have put paused sequences into the queue before the head.
    waiting_.Remove(head);
    running_.Insert(head);
    if (!head.started) head.first_scheduled = now;
    head.started = true;
    admitted_.push_back(head.id);
    const int32_t tokens = std::min(budget, head.uncomputed());
    head.blocks.Grow(tokens);
    grants_.push_back({&head, tokens});
    spoken_for += head.MissingBlocks();
    budget -= tokens;
    --slots;
  }
}

// Frees `blocks` blocks, from paused sequences if it must and if they suffice. They are not
// runnable, so unlike a running victim they cannot push back in at the next step.
bool StepPlanner::MakeRoom(int32_t blocks) {
  int32_t reachable = pool_.num_free();
  for (const Sequence* sequence : running_.items()) {
    if (sequence->paused) reachable += sequence->blocks.size();
  }
  if (reachable < blocks) return false;
  while (pool_.num_free() < blocks) Preempt(*running_.LatestPaused());
  return true;
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
  plan_.preempted = preempted_;
}

}  // namespace quire
