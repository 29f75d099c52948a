// Who goes first: the policy, restated as what may not happen. Rank among those that run is the
// level with which a sequence left the queue, then arrival.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/priority.h"
#include "tests/property/sim/sim_world.h"
#include "tests/testing/scheduler_peer.h"

namespace quire::sim {
namespace {

bool Contains(const std::vector<BlockId>& table, BlockId id) {
  return std::ranges::find(table, id) != table.end();
}

}  // namespace

// live_ is in order of arrival, and so are the sequences of a request.
bool World::Outranks(const ShadowSeq& a, const ShadowSeq& b) const {
  if (a.level != b.level) return a.level > b.level;
  return std::pair(a.owner->arrival, a.id.output_index) <
         std::pair(b.owner->arrival, b.id.output_index);
}

int32_t World::PriorityOf(const ShadowSeq& seq) const {
  return config_.fcfs ? 0 : seq.owner->request.priority;
}

// The level as the scheduler has it, within what its rule allows.
void World::TakeLevels(const StepPlan& plan) {
  for (const SequenceId& id : plan.admitted) {
    ShadowSeq& seq = *FindSeq(id);
    if (seq.unforked()) continue;
    const Sequence* real = SchedulerTestPeer::Find(scheduler_, id);
    if (real == nullptr) return Require(false, "L5: an admitted sequence is gone");
    seq.level = real->level;
    const int32_t most = config_.fcfs
                             ? kMaxPriority
                             : EffectivePriority(PriorityOf(seq), seq.owner->request.arrival,
                                                 MonotonicTime{now_}, config_.ageing_ns);
    Require(seq.level >= PriorityOf(seq) && seq.level <= most,
            "a level that its age does not give");
  }
}

// Whether the tenant of `a` has certainly had less than that of `b`, when `b` was chosen.
bool World::HadLess(const ShadowSeq& a, const ShadowSeq& b) {
  return HadOf(a) < HadOf(b) - 1e-6 * (1 + HadOf(b));
}

// Whether `a` certainly comes before `b`, which was admitted, in the queue, if `top` is the highest
// priority that waits. Of different tenants on one level the shares decide.
World::Certain World::GoesBefore(const ShadowSeq& a, const ShadowSeq& b, int32_t top) {
  const auto by_order = [](bool before) { return before ? Certain::kByOrder : Certain::kNot; };
  const bool earlier = std::pair(a.owner->arrival, a.id.output_index) <
                       std::pair(b.owner->arrival, b.id.output_index);
  if (config_.fcfs) return by_order(earlier);
  const auto level = [&](const ShadowSeq& seq) {
    return std::min(top, EffectivePriority(PriorityOf(seq), seq.owner->request.arrival,
                                           MonotonicTime{now_}, config_.ageing_ns));
  };
  if (level(a) != level(b)) return by_order(level(a) > level(b));
  // Who is owed its turn goes first; b may have become so in this step.
  const bool owed = a.started || a.bypasses >= config_.max_bypasses;
  const bool may_be_owed = b.started || b.most_bypasses + admitted_in_step_ > config_.max_bypasses;
  if (owed) return by_order(earlier || !may_be_owed);
  if (may_be_owed) return Certain::kNot;
  if (a.owner->request.tenant == b.owner->request.tenant) return by_order(earlier);
  return HadLess(a, b) ? Certain::kByShare : Certain::kNot;
}

// S4, S8, S10: a waiting one is passed a bounded number of times by those behind it, and never if
// the order is strict. The admissions are in order, each charged to its tenant before the next.
void World::CheckAdmission(const StepPlan& plan) {
  if (plan.admitted.empty()) return;
  admitted_in_step_ = static_cast<int32_t>(plan.admitted.size());
  int32_t top = kMinPriority, top_left = kMinPriority;  // before the admissions, after them
  ForEachSeq([&](const ShadowSeq& seq) {
    if (seq.ends_now() || seq.paused() || (seq.running && !seq.preempted_now)) return;
    if (seq.unforked()) return;
    top = std::max(top, PriorityOf(seq));
    if (!seq.admitted_now) top_left = std::max(top_left, PriorityOf(seq));
  });
  const auto waits = [](const ShadowSeq& seq) {
    return !seq.ends_now() && !seq.paused() && !seq.running && !seq.admitted_now &&
           !seq.unforked() && !seq.deferred_now;
  };
  for (const SequenceId& id : plan.admitted) {
    const ShadowSeq& other = *FindSeq(id);
    Require(!other.paused(), "L5: a paused sequence was admitted");
    if (other.unforked()) continue;
    const int32_t lower = std::max(top_left, PriorityOf(other));
    ForEachSeq([&](ShadowSeq& seq) {
      if (!waits(seq) || GoesBefore(seq, other, lower) == Certain::kNot) return;
      const Certain before = GoesBefore(seq, other, top);
      if (before == Certain::kNot) return;
      ++seq.passed_now;
      seq.passed_by_share = seq.passed_by_share || before == Certain::kByShare;
      result_.coverage.by_share += before == Certain::kByShare;
    });
    ChargeStart(other);
  }
  ForEachSeq([&](ShadowSeq& seq) {
    if (!waits(seq)) return;
    seq.bypasses += seq.passed_now;
    seq.most_bypasses += admitted_in_step_;
    result_.coverage.bypasses += seq.bypasses > 0;
    Require(seq.bypasses <= (config_.fcfs ? 0 : config_.max_bypasses),
            config_.fcfs          ? "S10: a later arrival passed an earlier one"
            : seq.passed_by_share ? "S8: passed more often than may be by who had more"
                                  : "S4: passed more often than may be");
  });
}

// Somebody of higher rank took the blocks of a victim, or of higher priority its place; whoever
// could run and ranks lower would have been taken first.
void World::CheckVictim(const ShadowSeq& victim, bool some_admitted) {
  bool reason = false;
  ForEachSeq([&](const ShadowSeq& seq) {
    if (seq.preempted_now || seq.ends_now() || seq.unforked()) return;
    if (seq.admitted_now) {
      reason = reason || PriorityOf(seq) > victim.level;
    } else if (seq.running && !seq.paused()) {
      reason = reason || (seq.planned && Outranks(seq, victim));
      Require(seq.pinned || !Outranks(victim, seq),
              "S3: one of higher rank is preempted before one of lower rank");
    } else if (seq.running && seq.paused()) {
      Require(some_admitted, "a runner gives its blocks before a paused one");
    }
  });
  Require(reason, "S3: preempted for nobody of higher rank");
}

void World::CheckPreemption(const StepPlan& plan) {
  int32_t lowest = kMaxPriority;  // level of those that ran
  bool ran = false;
  ForEachSeq([&](const ShadowSeq& seq) {
    if (seq.running && !seq.paused() && !seq.unforked()) lowest = std::min(lowest, seq.level);
  });
  for (const SequenceId& id : plan.preempted) {
    ShadowSeq& victim = *FindSeq(id);
    if (victim.paused()) continue;
    ran = true;
    CheckVictim(victim, !plan.admitted.empty());
    result_.coverage.displacements += 1;
    Require(++victim.displacements <= config_.max_preemptions,
            "S5: preempted more often than may be");
    victim.pinned = victim.displacements >= config_.max_preemptions;
  }
  if (!ran) return;
  for (const SequenceId& id : plan.admitted) {
    Require(PriorityOf(*FindSeq(id)) > lowest, "S5: admitted in a step that preempted a runner");
  }
  if (plan.admitted.empty()) CheckNeeded(plan);
}

// S6: the last victim was needed: what is left is less than what it gave.
void World::CheckNeeded(const StepPlan& plan) {
  const ShadowSeq& last = *FindSeq(plan.preempted.back());
  auto own = static_cast<int32_t>(plan.copies.size());  // each gives one back
  for (BlockId id : last.table) {
    if (id == BlockId::kNone) continue;
    bool shared = false;
    ForEachSeq([&](const ShadowSeq& seq) {
      shared = shared || (!seq.preempted_now && Contains(seq.table, id));
    });
    own += !shared;
  }
  const BlockPool& pool = SchedulerTestPeer::Pool(scheduler_);
  Require(pool.num_available() < own || own == 0, "S6: preempted although there was room");
}

// S2 and S3: the first by rank of those that run advances; who ran and was the first is a victim
// only of a higher priority. If none ran, one that waits starts.
void World::CheckProgress(const StepPlan& plan) {
  const ShadowSeq* first = nullptr;   // before the step
  const ShadowSeq* leader = nullptr;  // in it
  bool waits = false;
  int32_t highest = kMinPriority;  // of those that are admitted
  ForEachSeq([&](const ShadowSeq& seq) {
    if (seq.ends_now() || seq.paused() || seq.unforked()) return;
    waits = waits || !seq.running;
    if (seq.admitted_now) highest = std::max(highest, PriorityOf(seq));
    if (seq.running && (first == nullptr || Outranks(seq, *first))) first = &seq;
    const bool runs = (seq.running && !seq.preempted_now) || seq.admitted_now;
    if (runs && (leader == nullptr || Outranks(seq, *leader))) leader = &seq;
  });
  if (first != nullptr && first->preempted_now) {
    Require(highest > first->level, "S3: the first is a victim");
  }
  Require(leader == nullptr || leader->planned, "S3: the first does not advance");
  Require(first != nullptr || !waits || plan.num_tokens > 0, "S2: work waits and none runs");
}

}  // namespace quire::sim
