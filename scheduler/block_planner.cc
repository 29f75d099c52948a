#include "scheduler/block_planner.h"

#include <algorithm>

// - A younger sequence that lacks a block and finds no younger victim waits with what it holds: no
//   work is thrown away, and whoever is older can still take its blocks.
// - Admission asks for room for all known tokens and one more, beside the room that running
//   sequences lack for theirs: so a prompt, once begun, is not starved of blocks by a later one.
namespace quire {

BlockPlanner::BlockPlanner(BlockPool& pool, WaitingQueue& waiting, RunningSet& running)
    : pool_(pool), waiting_(waiting), running_(running) {
  preempted_.reserve(static_cast<size_t>(pool.total()));  // each victim holds a block
}

void BlockPlanner::Clear() { preempted_.clear(); }

int32_t BlockPlanner::GrowFor(Sequence& sequence, int32_t tokens) {
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

void BlockPlanner::BeginAdmission() {
  spoken_for_ = 0;
  for (const Sequence* sequence : running_.items()) {
    if (!sequence->paused) spoken_for_ += sequence->MissingBlocks();
  }
}

// Paused sequences are not runnable, so unlike a running victim they cannot push back in at the
// next step.
bool BlockPlanner::MakeRoomFor(const Sequence& head) {
  const int32_t blocks = head.MissingBlocks() + spoken_for_;
  int32_t reachable = pool_.num_free();
  for (const Sequence* sequence : running_.items()) {
    if (sequence->paused) reachable += sequence->blocks.size();
  }
  if (reachable < blocks) return false;
  while (pool_.num_free() < blocks) Preempt(*running_.LatestPaused());
  return true;
}

void BlockPlanner::Start(Sequence& head, int32_t tokens) {
  head.blocks.Grow(tokens);
  spoken_for_ += head.MissingBlocks();
}

void BlockPlanner::Preempt(Sequence& victim) {
  preempted_.push_back(victim.id);
  running_.Remove(victim);
  victim.Preempt();
  waiting_.Insert(victim);
}

}  // namespace quire
