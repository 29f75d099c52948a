#include "scheduler/block_planner.h"

#include <algorithm>

#include "absl/log/check.h"
#include "scheduler/pins.h"

// - A younger sequence that lacks a block and finds no younger victim waits with what it holds: no
//   work is thrown away, and whoever is older can still take its blocks.
// - Admission asks for room for all known tokens and one more, beside the room that running
//   sequences lack for theirs: so a prompt, once begun, is not starved of blocks by a later one.
// - Copies are executed in order and before any row, so the source of one may be given back, and be
//   written again, in the same step.
namespace quire {
namespace {

// Of one sequence, in steps: enough for a prefix of thousands of tokens in chunks of a block.
constexpr int32_t kMaxDeferrals = 64;

}  // namespace

BlockPlanner::BlockPlanner(const BlockPlannerOptions& options, BlockPool& pool, PrefixCache& cache,
                           WaitingQueue& waiting, RunningSet& running)
    : options_(options), pool_(pool), cache_(cache), waiting_(waiting), running_(running) {
  victims_.reserve(options.max_live);
  leaving_.resize(static_cast<size_t>(pool.total()));
  preempted_.reserve(options.max_live);
  copies_.reserve(static_cast<size_t>(options.max_running));  // each makes at most one
}

void BlockPlanner::Clear() {
  preempted_.clear();
  ++step_;
  copies_.clear();
}

bool BlockPlanner::MustCopyTail(const Sequence& sequence) const {
  if (sequence.num_computed % kBlockTokens == 0) return false;
  const BlockId tail = sequence.blocks.at(sequence.num_computed / kBlockTokens);
  return pool_.ref_count(tail) > 1 || pool_.findable(tail);
}

// Blocks it lacks for all of its tokens and the one to be drawn next.
int32_t BlockPlanner::Lacking(const Sequence& sequence) const {
  const int32_t missing = sequence.blocks.Missing(sequence.num_tokens() + 1);
  const int32_t window = WindowBlocks(sequence.request->kv) - sequence.blocks.held();
  return std::min(missing, std::max(1, window)) + MustCopyTail(sequence) + sequence.forks.places -
         1;  // each of its forks needs a tail of its own
}

int32_t BlockPlanner::GrowFor(Sequence& sequence, int32_t tokens) {
  if (tokens == 0) return 0;
  // A window gives blocks back after each step, so it takes nobody else's for more than a block's
  // tokens at a time.
  if (sequence.request->kv.window_tokens > 0) {
    tokens = std::min(tokens, std::max(Holds(sequence), kBlockTokens));
  }
  const auto missing = [&] {
    return sequence.blocks.Missing(sequence.num_computed + tokens) + MustCopyTail(sequence);
  };
  while (missing() > pool_.num_available()) {
    Sequence* victim = running_.VictimFor(sequence);
    if (victim == nullptr) {
      tokens = std::min(tokens, Holds(sequence));
      break;
    }
    Preempt(*victim, PreemptCause::kBlocks);
  }
  if (tokens > 0) Take(sequence, tokens);
  return tokens;
}

// More tokens for which it has blocks, or nobody has them; not negative.
int32_t BlockPlanner::Holds(const Sequence& sequence) const {
  const int32_t more = pool_.num_available() - MustCopyTail(sequence);
  if (more < 0) return 0;
  const int64_t holds = (int64_t{sequence.blocks.size()} + more) * kBlockTokens;
  return static_cast<int32_t>(std::min<int64_t>(INT32_MAX, holds - sequence.num_computed));
}

// There are blocks for it.
void BlockPlanner::Take(Sequence& sequence, int32_t tokens) {
  const int32_t end = sequence.num_computed + tokens;
  sequence.granted_step = step_;
  matched_ = nullptr;  // what it found may be evicted now
  cache_.EnsureFree(sequence.blocks.Missing(end) + MustCopyTail(sequence));
  if (MustCopyTail(sequence)) {
    const int32_t tail = sequence.num_computed / kBlockTokens;
    const BlockId fresh = pool_.Allocate();
    copies_.push_back({.src = sequence.blocks.at(tail),
                       .dst = fresh,
                       .token_count = sequence.num_computed % kBlockTokens});
    sequence.blocks.Replace(tail, fresh);
    pool_.Release(fresh);  // it is the table's now
  }
  sequence.blocks.Grow(end);
}

void BlockPlanner::BeginAdmission() {
  spoken_for_ = 0;
  for (const Sequence* sequence : running_.items()) {
    if (!sequence->paused) spoken_for_ += Lacking(*sequence);
  }
}

void BlockPlanner::Look(const Sequence& head) {
  match_ = cache_.Find(head);
  matched_ = &head;
}

bool BlockPlanner::MakeRoomFor(const Sequence& head, bool displace) {
  CHECK(matched_ == &head);
  if (!ChooseVictims(head, displace)) return false;
  if (victims_.empty()) return true;
  for (Sequence* victim : victims_) {
    if (!victim->paused) spoken_for_ -= Lacking(*victim);
    Preempt(*victim, PreemptCause::kPriority);
  }
  victims_.clear();
  Look(head);  // what they leave may be more of it
  return true;
}

// From the lowest rank, as many as it takes: paused ones, which are not runnable and so cannot push
// back in at the next step; then those of a level below its priority, which cannot either.
bool BlockPlanner::ChooseVictims(const Sequence& head, bool displace) {
  const std::span<Sequence* const> running = running_.items();
  int32_t places = options_.max_running - running_.num_active();
  int32_t have = pool_.num_available();
  // Each displacement asks for one spare block more: where memory is short, coming back is not
  // worth a block that somebody else needs a moment later.
  const int32_t forks = std::min(head.forks.children, std::max(0, places - 1));
  int32_t need = std::min(Fresh(head) + forks, pool_.total() - Matched(head)) + spoken_for_ +
                 std::min(head.setbacks.displacements, running_.num_active());
  victims_.clear();
  const auto has_room = [&] {
    return have - Revived(head) >= need && PinsHold(running, victims_, head, pool_.total());
  };
  if (has_room() && places > 0) return true;
  std::ranges::fill(leaving_, 0);
  for (size_t i = running.size(); i-- > 0 && !has_room();) {
    if (running[i]->paused) have += Leave(*running[i]);
  }
  for (size_t i = running.size(); displace && i-- > 0 && !(has_room() && places > 0);) {
    Sequence* victim = running[i];
    if (victim->level >= head.priority) break;
    if (victim->paused || victim->setbacks.pinned || victim->setbacks.admitted_step == step_)
      continue;
    have += Leave(*victim);
    need -= Lacking(*victim);
    ++places;
  }
  return has_room() && places > 0;
}

// Makes it a victim; returns how many blocks nobody holds without it.
int32_t BlockPlanner::Leave(Sequence& victim) {
  victims_.push_back(&victim);
  int32_t left = 0;
  for (BlockId id : victim.blocks.ids()) {
    if (id == BlockId::kNone) continue;
    left += ++leaving_[static_cast<size_t>(id)] == pool_.ref_count(id);
  }
  return left;
}

// The block of the match, or kNone if the head's window has passed it.
BlockId BlockPlanner::MatchedBlock(const Sequence& head, size_t index) const {
  const auto block = static_cast<int32_t>(index);
  return NeedsBlock(head.request->kv, block, match_.tokens()) ? match_.full[index] : BlockId::kNone;
}

int32_t BlockPlanner::Matched(const Sequence& head) const {
  int32_t count = 0;
  for (size_t i = 0; i < match_.full.size(); ++i) count += MatchedBlock(head, i) != BlockId::kNone;
  return count;
}

// Blocks that it needs beside those of the match, for all its tokens and one more.
int32_t BlockPlanner::Fresh(const Sequence& head) const {
  const int32_t missing =
      BlocksFor(head.num_tokens() + 1) - static_cast<int32_t>(match_.full.size());
  return std::min(missing, std::max(1, WindowBlocks(head.request->kv) - Matched(head)));
}

// Blocks of the match that nobody holds but victims: they are available, and then they are not.
int32_t BlockPlanner::Revived(const Sequence& head) const {
  int32_t count = 0;
  for (size_t i = 0; i < match_.full.size(); ++i) {
    const BlockId id = MatchedBlock(head, i);
    if (id == BlockId::kNone) continue;
    const int32_t leaving = victims_.empty() ? 0 : leaving_[static_cast<size_t>(id)];
    count += pool_.ref_count(id) == leaving;
  }
  return count;
}

int32_t BlockPlanner::PlacesFor(const Sequence& head, int32_t places) const {
  return std::max(1,
                  std::min({1 + head.forks.children, places, head.OutputsWithin(pool_.total())}));
}

bool BlockPlanner::Defers(Sequence& head) {
  CHECK(matched_ == &head);
  if (head.setbacks.deferrals >= kMaxDeferrals || !cache_.Uses(head)) return false;
  const std::span<const TokenId> tokens = head.tokens;
  const size_t known = match_.full.size() * kBlockTokens;
  const size_t next = known + kBlockTokens;
  if (next >= tokens.size()) return false;
  const bool computed = std::ranges::any_of(running_.items(), [&](const Sequence* other) {
    if (other->granted_step != step_ || other->num_tokens() < static_cast<int32_t>(next) ||
        other->num_computed >= static_cast<int32_t>(next) || !cache_.Uses(*other) ||
        other->scope() != head.scope()) {
      return false;
    }
    const std::span<const TokenId> others = other->tokens;
    // The block itself first: it is what most differ in.
    return std::ranges::equal(tokens.subspan(known, kBlockTokens),
                              others.subspan(known, kBlockTokens)) &&
           std::ranges::equal(tokens.first(known), others.first(known));
  });
  head.setbacks.deferrals += computed;
  return computed;
}

int32_t BlockPlanner::Start(Sequence& head, int32_t budget) {
  CHECK(matched_ == &head);
  head.setbacks.admitted_step = step_;
  // The source of a copy is held until the copy has its block: one block more for a moment.
  if (match_.partial_tokens > 0 && pool_.ref_count(match_.partial) == 0 &&
      pool_.num_available() - Revived(head) <= Fresh(head)) {
    match_.partial_tokens = 0;
  }
  for (size_t i = 0; i < match_.full.size(); ++i) head.blocks.Append(MatchedBlock(head, i));
  if (match_.partial_tokens > 0) head.blocks.Append(match_.partial);
  head.num_computed = match_.tokens();
  if (head.cached_prompt_tokens == Sequence::kNotLookedUp) {
    head.cached_prompt_tokens = head.num_computed;
    if (cache_.Uses(head)) cache_.CountQuery(head.num_prompt(), head.num_computed);
  }
  const int32_t tokens = std::min({budget, head.uncomputed(), Holds(head)});
  Take(head, tokens);
  spoken_for_ += Lacking(head);
  return tokens;
}

// Out of the running set, back to its place in the queue, without blocks.
void BlockPlanner::Preempt(Sequence& victim, PreemptCause cause) {
  if (victim.paused) cause = PreemptCause::kPaused;
  ++preemptions_[static_cast<size_t>(cause)];
  // A slow reader is preempted by its own doing: that is not bounded.
  victim.setbacks.displacements += !victim.paused;
  victim.setbacks.pinned = victim.setbacks.displacements >= options_.max_preemptions;
  preempted_.push_back(victim.id);
  running_.Remove(victim);
  cache_.PublishTail(victim);
  victim.Preempt();
  waiting_.Insert(victim);
}

}  // namespace quire
