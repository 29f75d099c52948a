#include "scheduler/block_planner.h"

#include <algorithm>

#include "scheduler/pins.h"

// - A younger sequence that lacks a block and finds no younger victim waits with what it holds: no
//   work is thrown away, and whoever is older can still take its blocks.
// - Admission asks for room for all known tokens and one more, beside the room that running
//   sequences lack for theirs: so a prompt, once begun, is not starved of blocks by a later one.
namespace quire {

BlockPlanner::BlockPlanner(const BlockPlannerOptions& options, BlockPool& pool,
                           WaitingQueue& waiting, RunningSet& running)
    : options_(options), pool_(pool), waiting_(waiting), running_(running) {
  victims_.reserve(static_cast<size_t>(pool.total()));
  preempted_.reserve(static_cast<size_t>(pool.total()));  // each victim holds a block
}

void BlockPlanner::Clear() {
  preempted_.clear();
  ++step_;
}

int32_t BlockPlanner::GrowFor(Sequence& sequence, int32_t tokens) {
  const int32_t end = sequence.num_computed + tokens;
  while (sequence.blocks.Missing(end) > pool_.num_free()) {
    Sequence* victim = running_.VictimFor(sequence);
    if (victim == nullptr) {
      const int32_t holds = (sequence.blocks.size() + pool_.num_free()) * kBlockTokens;
      tokens = std::max(0, std::min(tokens, holds - sequence.num_computed));
      break;
    }
    Preempt(*victim, PreemptCause::kBlocks);
  }
  if (tokens > 0) sequence.blocks.Grow(sequence.num_computed + tokens);
  return tokens;
}

void BlockPlanner::BeginAdmission() {
  spoken_for_ = 0;
  for (const Sequence* sequence : running_.items()) {
    if (!sequence->paused) spoken_for_ += sequence->MissingBlocks();
  }
}

bool BlockPlanner::MakeRoomFor(const Sequence& head, bool displace) {
  if (!ChooseVictims(head, displace)) return false;
  for (Sequence* victim : victims_) {
    if (!victim->paused) spoken_for_ -= victim->MissingBlocks();
    Preempt(*victim, PreemptCause::kPriority);
  }
  return true;
}

// From the lowest rank, as many as it takes: paused ones, which are not runnable and so cannot push
// back in at the next step; then those of a level below its priority, which cannot either.
bool BlockPlanner::ChooseVictims(const Sequence& head, bool displace) {
  const std::span<Sequence* const> running = running_.items();
  int32_t places = options_.max_running - running_.num_active();
  int32_t have = pool_.num_free();
  // Each displacement asks for one spare block more: where memory is short, coming back is not
  // worth a block that somebody else needs a moment later.
  int32_t need =
      head.MissingBlocks() + spoken_for_ + std::min(head.displacements, running_.num_active());
  victims_.clear();
  const auto has_room = [&] {
    return have >= need && PinsHold(running, victims_, head, pool_.total());
  };
  const auto take = [&](Sequence* victim) {
    victims_.push_back(victim);
    have += victim->blocks.size();
  };
  for (size_t i = running.size(); i-- > 0 && !has_room();) {
    if (running[i]->paused) take(running[i]);
  }
  for (size_t i = running.size(); displace && i-- > 0 && !(has_room() && places > 0);) {
    Sequence* victim = running[i];
    if (victim->level >= head.priority) break;
    if (victim->paused || victim->pinned || victim->admitted_step == step_) continue;
    take(victim);
    need -= victim->MissingBlocks();
    ++places;
  }
  return has_room() && places > 0;
}

void BlockPlanner::Start(Sequence& head, int32_t tokens) {
  head.admitted_step = step_;
  head.blocks.Grow(tokens);
  spoken_for_ += head.MissingBlocks();
}

// Out of the running set, back to its place in the queue, without blocks.
void BlockPlanner::Preempt(Sequence& victim, PreemptCause cause) {
  if (victim.paused) cause = PreemptCause::kPaused;
  ++preemptions_[static_cast<size_t>(cause)];
  // A slow reader is preempted by its own doing: that is not bounded.
  victim.displacements += !victim.paused;
  victim.pinned = victim.displacements >= options_.max_preemptions;
  preempted_.push_back(victim.id);
  running_.Remove(victim);
  victim.Preempt();
  waiting_.Insert(victim);
}

}  // namespace quire
