// One step of a world: what must end is known before, what must be drawn follows from the plan, and
// the events have to be exactly these.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/property/sim/sim_world.h"
#include "tests/testing/fake_draw.h"
#include "tests/testing/mix.h"
#include "tests/testing/scheduler_peer.h"

namespace quire::sim {
namespace {

std::string Name(const SequenceId& id) {
  return absl::StrCat(static_cast<uint64_t>(id.request), ".", id.output_index);
}

uint64_t HashPlan(const StepPlan& plan) {
  uint64_t hash = static_cast<uint64_t>(plan.num_tokens);
  const auto fold = [&](auto value) { hash = Mix(hash, static_cast<uint64_t>(value)); };
  for (const PlannedSeq& seq : plan.seqs) {
    fold(seq.id.request);
    fold(seq.id.output_index);
    fold(seq.tokens.size());
    for (BlockId id : seq.block_table) fold(id);
  }
  for (const SequenceId& id : plan.preempted) fold(id.request);
  for (const SequenceId& id : plan.admitted) fold(id.request);
  return hash;
}

}  // namespace

MonotonicTime World::DueTime(const ShadowSeq& seq) const {
  const Request& request = seq.owner->request;
  MonotonicTime due = std::min(request.deadline, request.time_limit);
  if (!seq.started)
    due = std::min(due, MonotonicTime{Nanos(request.arrival) + config_.max_queue_ns});
  return due;
}

// Which of the times that have passed names the end: the earliest; a time limit before a deadline
// before the queue's age where they are equal.
FinishReason World::DueReason(const ShadowSeq& seq) const {
  const Request& request = seq.owner->request;
  const MonotonicTime due = DueTime(seq);
  if (due > MonotonicTime{now_}) return FinishReason::kNone;
  if (request.time_limit == due) return FinishReason::kTimeLimit;
  return request.deadline == due ? FinishReason::kDeadline : FinishReason::kQueueAge;
}

void World::MarkDue() {
  withdrawn_now_ = false;
  ForEachSeq([&](ShadowSeq& seq) {
    seq.must_end = seq.abort != FinishReason::kNone ? seq.abort : DueReason(seq);
    seq.draws = seq.fails = seq.planned = seq.preempted_now = seq.admitted_now = false;
    seq.deferred_now = seq.parts_now = false;
    seq.granted = seq.hit_now = seq.passed_now = 0;
    if (!seq.ends_now()) return;
    // Its blocks are back before the plan is made.
    seq.running = false;
    seq.table.clear();
  });
}

void World::DoStep(const Op& op) {
  now_ += op.nanos;
  MarkDue();
  const StepPlan& plan = scheduler_.Schedule(MonotonicTime{now_});
  result_.decisions = Mix(result_.decisions, HashPlan(plan));
  CheckPlan(plan);
  if (failed()) return;
  TakeLevels(plan);
  CheckPreemption(plan);
  CheckAdmission(plan);
  CheckProgress(plan);
  if (failed()) return;
  MoveShadow(plan);
  MoveTables(plan);
  if (failed()) return;
  scheduler_.CheckInvariants();
  InjectBeforeCommit(op, plan);
  sampled_.clear();
  if (plan.num_tokens > 0) {
    const StepBatch& batch = builder_.Build(plan);
    const StepOutput out = runner_.Forward(batch);
    FakeDrawAll(out.logits, kVocab, builder_.specs(), sampled_);
  }
  ExpectEvents(plan);
  InjectIntoDraws(op);
  events_.clear();
  if (plan.num_tokens > 0) scheduler_.ObserveStep(plan.num_tokens + 3 + op.victim % 3);
  scheduler_.Commit(sampled_, events_);
  ++result_.steps;
  CheckEvents();
  for (const std::string& error : runner_.errors()) Require(false, absl::StrCat("A8: ", error));
  if (failed()) return;
  scheduler_.CheckInvariants();
  ForEachSeq([&](ShadowSeq& seq) { CheckMerged(seq); });
  CheckBooks();
  CheckHolders();
  PoisonFreeBlocks();
}

// L5: from waiting to running by admission, back by preemption, no other way.
void World::MoveShadow(const StepPlan& plan) {
  for (const SequenceId& id : plan.preempted) {
    ShadowSeq& seq = *FindSeq(id);
    seq.running = false;
    seq.table.clear();
    seq.computed_before = std::max(seq.computed_before, seq.computed);
    seq.computed = 0;
    ++seq.preemptions;
    ++preempted_;
    ForEachSeq([&](ShadowSeq& other) {
      if (other.owner == seq.owner && other.unforked()) other.running = false;
    });
    ++result_.coverage.preemptions;
    result_.coverage.paused_victims += seq.paused();
  }
  for (const SequenceId& id : plan.admitted) {
    ShadowSeq& seq = *FindSeq(id);
    seq.running = true;
    if (seq.unforked()) continue;
    seq.bypasses = seq.most_bypasses = 0;
    seq.passed_by_share = false;
    seq.computed = seq.hit_now;
    if (seq.first_hit < 0) {
      seq.first_hit = seq.hit_now;
      const bool asks = config_.prefix_cache && !seq.owner->request.cache_bypass;
      query_tokens_ += asks ? seq.num_prompt() : 0;
      hit_tokens_ += seq.hit_now;
    }
    result_.coverage.hits += seq.hit_now > 0;
    result_.coverage.hit_tokens += seq.hit_now;
    result_.coverage.partial_hits += seq.hit_now % kBlockTokens != 0;
    if (!seq.started) seq.first_scheduled = MonotonicTime{now_};
    seq.started = true;
    ForEachSeq([&](ShadowSeq& other) {
      if (other.owner != seq.owner || !other.unforked()) return;
      if (!other.started) other.first_scheduled = MonotonicTime{now_};
      other.started = true;
    });
  }
}

void World::InjectBeforeCommit(const Op& op, const StepPlan& plan) {
  if (plan.seqs.empty() || (op.fault != Fault::kAbort && op.fault != Fault::kStall)) return;
  const PlannedSeq& planned = plan.seqs[static_cast<size_t>(op.victim) % plan.seqs.size()];
  const auto id = static_cast<uint32_t>(planned.id.request);
  if (op.fault == Fault::kStall) {
    ++result_.coverage.stalls_in_step;
    return DoPause(id, true);
  }
  ++result_.coverage.aborts_in_step;
  const bool first = FindSeq(planned.id)->owner->abort == FinishReason::kNone;
  DoAbort(id, op.reason);
  if (!first) return;
  ForEachSeq([&](ShadowSeq& seq) {
    if (seq.id.request == planned.id.request && !seq.ends_now()) seq.must_end = op.reason;
  });
}

// Outputs that part in this step are drawn from one row: what is not finite is so for all of them.
void World::InjectIntoDraws(const Op& op) {
  if (sampled_.empty() || (op.fault != Fault::kNonFinite && op.fault != Fault::kNoToken)) return;
  const bool non_finite = op.fault == Fault::kNonFinite;
  const size_t victim = static_cast<size_t>(op.victim) % sampled_.size();
  const SequenceId id = sampled_[victim].sequence;
  const bool parts = FindSeq(id) != nullptr && FindSeq(id)->parts_now;
  for (size_t i = 0; i < sampled_.size(); ++i) {
    Sampled& drawn = sampled_[i];
    ShadowSeq* seq = FindSeq(drawn.sequence);
    if (seq == nullptr) return Require(false, "a draw for nobody");
    const bool same_row = drawn.sequence.request == id.request && parts && seq->parts_now;
    if (i != victim && !(non_finite && same_row)) continue;
    drawn.token = TokenId::kNone;
    drawn.outcome = non_finite ? SampleOutcome::kNonFinite : SampleOutcome::kNoAllowedToken;
    seq->fails = true;
    ++result_.coverage.failed_draws;
  }
}

// The others have what the first one has: those with a place run on from there, the rest wait.
void World::Fork(ShadowSeq& first) {
  ForEachSeq([&](ShadowSeq& seq) {
    if (seq.owner != first.owner || !seq.unforked()) return;
    seq.first_hit = first.first_hit;
    seq.level = first.level;
    seq.computed_before = first.computed;
    ++result_.coverage.forks;
    if (!seq.running) return;
    seq.computed = first.computed;
    seq.granted = first.granted;
    seq.table = first.table;
    seq.draws = seq.parts_now = true;
  });
  first.parts_now = true;
  const_cast<ShadowRequest*>(first.owner)->forked = true;
}

// Also counts the rows of the plan, as the statistics should.
void World::ExpectEvents(const StepPlan& plan) {
  for (const PlannedSeq& planned : plan.seqs) {
    ShadowSeq& seq = *FindSeq(planned.id);
    const int32_t begin = seq.computed, end = begin + seq.granted;
    const int32_t again = std::clamp(seq.computed_before, begin, end);
    const int32_t prompt_end = std::clamp(seq.num_prompt(), again, end);
    recompute_rows_ += again - begin;
    prefill_rows_ += prompt_end - again;
    decode_rows_ += end - prompt_end;
    result_.coverage.recomputed += again - begin;
    seq.computed = end;
    FillBlocks(seq, end);
    seq.draws = end == seq.known() && !seq.ends_now();
    if (seq.draws && !seq.owner->forked) Fork(seq);
  }
}

void World::CheckEvents() {
  for (const TokenEvent& event : events_) {
    result_.decisions = Mix(result_.decisions, static_cast<uint64_t>(event.token));
    ShadowSeq* seq = FindSeq(event.sequence);
    if (seq == nullptr || seq->ended) {
      return Require(false,
                     absl::StrCat("L2: an event of ", Name(event.sequence), " behind its end"));
    }
    CheckEvent(event, *seq);
    if (failed()) return;
  }
  ForEachSeq([&](const ShadowSeq& seq) {
    Require(!seq.ends_now(), absl::StrCat("L4: ", Name(seq.id), " did not end in time"));
    Require(!seq.draws, absl::StrCat("L2: the token of ", Name(seq.id), " is lost"));
  });
  std::erase_if(live_, [](const auto& request) { return request->open == 0; });
}

// D1, L1, L2: the next token of the lone run, or the end that is due; each once.
void World::CheckEvent(const TokenEvent& event, ShadowSeq& seq) {
  const std::string name = Name(seq.id);
  if (seq.ends_now()) {
    Require(event.token == TokenId::kNone, absl::StrCat("L2: a token of ", name, " after its end"));
    Require(event.finish == seq.must_end,
            absl::StrCat("L1: ", name, " ends with reason ", static_cast<int>(event.finish),
                         " instead of ", static_cast<int>(seq.must_end)));
  } else {
    Require(seq.draws, absl::StrCat("L2: ", name, " draws, and should not"));
    const SoloOutput& expected = seq.expected;
    const auto next = static_cast<size_t>(seq.received);
    const bool nan = next == expected.tokens.size();
    const bool last = next + 1 >= expected.tokens.size() && expected.finish != FinishReason::kError;
    if (seq.fails || nan) {
      result_.coverage.nan_rows += nan;
      if (event.outcome == SampleOutcome::kNonFinite) {
        Taint(seq);
        withdrawn_now_ = true;
      }
      Require(event.finish == FinishReason::kError && event.token == TokenId::kNone,
              absl::StrCat("R17: ", name, " goes on after a failed draw"));
    } else {
      Require(event.token == expected.tokens[next],
              absl::StrCat("D1: token ", next, " of ", name, " is not what it is alone"));
      Require(
          event.finish == (last ? expected.finish : FinishReason::kNone),
          absl::StrCat("D1: ", name, " has ", next + 1, " tokens and reason ",
                       static_cast<int>(event.finish), ", should end at ", expected.tokens.size()));
      ++seq.received;
      ChargeDraw(seq);
      result_.coverage.whole += last;
    }
    seq.draws = false;
  }
  if (event.finish != FinishReason::kNone) {
    Require(event.preemptions == seq.preemptions, "preemptions miscounted");
    Require(event.cached_prompt_tokens == std::max(0, seq.first_hit), "cached tokens miscounted");
    Require(event.first_scheduled == seq.first_scheduled, "start time wrong");
    EndSeq(seq, event.finish);
  }
}

void World::EndSeq(ShadowSeq& seq, FinishReason finish) {
  Coverage& coverage = result_.coverage;
  if (finish == FinishReason::kDeadline || finish == FinishReason::kTimeLimit) {
    ++(seq.started ? coverage.timed_out_running : coverage.timed_out_waiting);
  }
  coverage.queue_aged += finish == FinishReason::kQueueAge;
  coverage.pool_bound +=
      finish == FinishReason::kLength && seq.received < seq.owner->request.stop.max_tokens;
  if (seq.planned) TouchEqual(seq);
  seq.ended = true;
  seq.must_end = FinishReason::kNone;
  seq.running = false;
  seq.table.clear();
  ++finished_;
  --const_cast<ShadowRequest*>(seq.owner)->open;
}

}  // namespace quire::sim
