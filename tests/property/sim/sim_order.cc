// Who goes first: the policy, restated.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/property/sim/sim_world.h"
#include "tests/testing/scheduler_peer.h"

namespace quire::sim {

// First come, first served, preempted ones at their old place (S10): whoever is admitted leaves no
// earlier one behind.
void World::CheckAdmission(const StepPlan& plan) {
  bool left_behind = false;
  size_t admitted = 0;
  ForEachSeq([&](const ShadowSeq& seq) {
    if (seq.ends_now() || seq.paused() || (seq.running && !seq.preempted_now)) return;
    Require(!seq.admitted_now || !left_behind, "S10: a later arrival passed an earlier one");
    left_behind = left_behind || !seq.admitted_now;
    admitted += seq.admitted_now;
  });
  Require(admitted == plan.admitted.size(), "L5: a paused sequence was admitted");
}

// Victims are paused ones, then the latest arrivals; nobody is admitted beside a victim that ran.
void World::CheckPreemption(const StepPlan& plan) {
  if (plan.preempted.empty()) return;
  bool ran = false;
  for (const SequenceId& id : plan.preempted) ran = ran || !FindSeq(id)->paused();
  Require(!ran || plan.admitted.empty(), "S5: admitted in a step that preempted a runner");
  bool victims = false;  // from here on
  ForEachSeq([&](const ShadowSeq& seq) {
    if (!seq.running) return;
    if (seq.paused())
      return Require(!ran || seq.preempted_now, "a runner goes before a paused one");
    Require(!victims || seq.preempted_now, "S3: an older one is preempted before a younger one");
    victims = victims || seq.preempted_now;
  });
  if (!plan.admitted.empty()) return;
  // S6: the last victim was needed.
  const ShadowSeq& last = *FindSeq(plan.preempted.back());
  Require(SchedulerTestPeer::Pool(scheduler_).num_available() < static_cast<int32_t>(last.table.size()),
          "S6: preempted although there was room");
}

// S2 and S3: the oldest that runs advances and is no victim; if none runs, one that waits starts.
void World::CheckProgress(const StepPlan& plan) {
  const ShadowSeq* oldest = nullptr;
  bool waits = false;
  ForEachSeq([&](const ShadowSeq& seq) {
    if (seq.ends_now() || seq.paused()) return;
    waits = waits || !seq.running;
    if (seq.running && oldest == nullptr) oldest = &seq;
  });
  if (oldest != nullptr) {
    Require(!oldest->preempted_now, "S3: the oldest is a victim");
    Require(oldest->planned, "S3: the oldest does not advance");
  } else {
    Require(!waits || plan.num_tokens > 0, "S2: work waits and none runs");
  }
}

}  // namespace quire::sim
