// What every plan must keep, and what the scheduler must say of itself after every step.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/property/sim/sim_world.h"
#include "tests/testing/scheduler_peer.h"

namespace quire::sim {
namespace {

constexpr int32_t kMaxDeferrals = 64;  // of the block planner

}  // namespace

// S1: budget and sequence limit; L5: who may be in it.
void World::CheckPlan(const StepPlan& plan) {
  Require(plan.num_tokens <= config_.step_tokens, "S1: over the token budget");
  Require(static_cast<int32_t>(plan.seqs.size()) <= config_.max_running,
          "S1: over the sequence limit");
  for (const SequenceId& id : plan.preempted) {
    ShadowSeq* seq = FindSeq(id);
    if (seq == nullptr || seq->ended || !seq->running || seq->preempted_now)
      return Require(false, "L5: preempted what does not run");
    seq->preempted_now = true;
  }
  for (const SequenceId& id : plan.admitted) {
    ShadowSeq* seq = FindSeq(id);
    if (seq == nullptr || seq->ended || seq->ends_now() || seq->running || seq->admitted_now)
      return Require(false, "L5: admitted what does not wait");
    seq->admitted_now = true;
    seq->hit_now = SchedulerTestPeer::Find(scheduler_, id)->num_computed;
  }
  for (const SequenceId& id : plan.deferred) {
    ShadowSeq* seq = FindSeq(id);
    if (seq == nullptr || seq->running || seq->unforked() || seq->admitted_now)
      return Require(false, "L5: defers what does not wait");
    seq->deferred_now = true;
    ++result_.coverage.deferrals;
    Require(++seq->deferrals <= kMaxDeferrals, "S4: deferred more often than may be");
  }
  int32_t tokens = 0;
  bool longer = false;
  for (const PlannedSeq& planned : plan.seqs) {
    ShadowSeq* seq = FindSeq(planned.id);
    if (seq == nullptr || seq->ended || seq->ends_now())
      return Require(false, "L2: an ended sequence got tokens");
    CheckPlanned(planned, *seq);
    if (failed()) return;
    Require(!longer || seq->granted > 1, "a decode row behind a prompt");
    longer = longer || seq->granted > 1;
    tokens += seq->granted;
  }
  Require(tokens == plan.num_tokens, "S1: tokens do not add up");
}

void World::CheckPlanned(const PlannedSeq& planned, ShadowSeq& seq) {
  Require(!seq.planned, "S1: a sequence twice");
  Require(!seq.preempted_now, "L5: a preempted sequence got tokens");
  Require(!seq.unforked(), "an output computes the prompt of another");
  Require(seq.running || seq.admitted_now, "L5: a waiting sequence got tokens");
  Require(!seq.paused(), "L5: a paused sequence got tokens");
  seq.planned = true;
  seq.granted = static_cast<int32_t>(planned.tokens.size());
  Require(seq.granted >= 1, "S1: a sequence without tokens");
  if (seq.admitted_now) {
    Require(planned.num_computed == seq.hit_now, "rows are skipped or computed twice");
    Require(seq.hit_now >= 0 && seq.hit_now < seq.known(), "a hit leaves nothing to compute");
    Require(seq.hit_now == 0 || (config_.prefix_cache && !seq.owner->request.cache_bypass),
            "a hit of what shares nothing");
  } else {
    Require(planned.num_computed == seq.computed, "rows are skipped or computed twice");
  }
  const int32_t end = planned.num_computed + seq.granted;
  Require(end <= seq.known() && planned.history.size() == static_cast<size_t>(seq.known()),
          "L2: the tokens of a sequence are not those its client has");
  if (failed()) return;
  Require(std::equal(planned.tokens.begin(), planned.tokens.end(),
                     seq.whole.begin() + planned.num_computed),
          "L2: computes other tokens than its own");
  Require(planned.num_logits == (end == seq.known() ? 1 : 0),
          "draws inside a prompt, or not at all");
  int32_t draws = 0;  // with the outputs that part from it
  for (const ShadowSeq& other : seq.owner->seqs) {
    draws += &other == &seq || (other.unforked() && (other.running || other.admitted_now));
  }
  Require(planned.num_draws == (end == seq.known() && !seq.unforked() ? draws : 1),
          "other outputs than those with a place part from the first");
  Require(planned.num_prompt == seq.num_prompt(), "its prompt has another length");
}

// L6, A2: the statistics follow from the shadow.
void World::CheckBooks() {
  SchedulerStats want;
  ForEachSeq([&](const ShadowSeq& seq) {
    const bool active = seq.running && !seq.paused();
    want.running += active;
    want.waiting += !active;
    if (seq.unforked()) return;
    if (!active) want.waiting_tokens += seq.uncomputed();
    if (active && seq.uncomputed() > 1) want.prompt_backlog += seq.uncomputed();
  });
  const SchedulerStats stats = scheduler_.Stats();
  Require(stats.running == want.running && stats.waiting == want.waiting,
          absl::StrCat("L6: ", stats.running, " run and ", stats.waiting, " wait, should be ",
                       want.running, " and ", want.waiting));
  Require(stats.waiting_tokens == want.waiting_tokens, "L6: tokens that wait are miscounted");
  Require(stats.prompt_backlog == want.prompt_backlog, "L6: prompts that run are miscounted");
  Require(stats.sequences_started == started_ && stats.sequences_finished == finished_,
          "L6: outcomes do not add up");
  Require(stats.preemptions == preempted_, "L6: preemptions are miscounted");
  Require(stats.prefill_tokens == prefill_rows_ && stats.recompute_tokens == recompute_rows_ &&
              stats.decode_tokens == decode_rows_,
          "L6: rows are miscounted");
  Require(stats.prefix_query_tokens == query_tokens_ && stats.prefix_hit_tokens == hit_tokens_,
          "L6: hits are miscounted");
  CheckShares();
  result_.coverage.evicted = stats.block_evictions;
  Require(stats.blocks_free + stats.blocks_cached + stats.blocks_used == stats.blocks_total,
          "A2: blocks do not add up");
}

// The engine sleeps by these two: a wake-up that is dropped here is a request that hangs.
void World::CheckWakeUp() {
  bool work = false;
  MonotonicTime next = MonotonicTime::kInfinite;
  ForEachSeq([&](const ShadowSeq& seq) {
    work = work || !seq.paused() || seq.abort != FinishReason::kNone;
    next = std::min(next, DueTime(seq));
  });
  Require(scheduler_.HasWork() == work, "S2: HasWork is wrong");
  Require(scheduler_.NextDeadline() == next, "P5: NextDeadline is wrong");
}

// A9, L1, L6.
void World::CheckNothingLeft() {
  Require(live_.empty(), "L1: a request without an end");
  const SchedulerStats stats = scheduler_.Stats();
  Require(stats.running == 0 && stats.waiting == 0 && stats.waiting_tokens == 0,
          "A9: something is left");
  Require(stats.blocks_used == 0 && stats.blocks_free + stats.blocks_cached == stats.blocks_total,
          "A9: blocks are held by nobody");
  Require(stats.sequences_started == stats.sequences_finished, "L6: outcomes do not add up");
  Require(scheduler_.NextDeadline() == MonotonicTime::kInfinite, "A9: something can still expire");
}

}  // namespace quire::sim
