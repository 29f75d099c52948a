// The properties that every step of a World must have. Letters and numbers as in the list of
// invariants: A allocator, L lifecycle, S scheduler, D determinism; the allocator's own are in
// Scheduler::CheckInvariants and the fake model.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/property/traffic.h"

namespace quire {
namespace {

bool Contains(std::span<const SequenceId> ids, SequenceId id) {
  return std::ranges::find(ids, id) != ids.end();
}

void InsertByArrival(std::vector<SequenceId>& ids, SequenceId id) {
  ids.insert(std::ranges::lower_bound(ids, id), id);  // request ids ascend with arrival
}

}  // namespace

// S1: budget, sequence limit, blocks; who may be in it.
void World::CheckPlan(const StepFacts& facts) {
  const StepPlan& plan = facts.plan;
  Require(plan.num_tokens <= options_.scheduler.step_tokens, "over the token budget");
  Require(static_cast<int32_t>(plan.seqs.size()) <= options_.scheduler.max_running,
          "over the sequence limit");
  int32_t tokens = 0;
  std::set<BlockId> written;
  std::set<SequenceId> seen;
  for (const PlannedSeq& seq : plan.seqs) {
    const auto rows = static_cast<int32_t>(seq.tokens.size());
    tokens += rows;
    Require(rows >= 1, "a sequence without tokens");
    Require(seen.insert(seq.id).second, "a sequence twice");
    Require(!Paused(seq.id), "a paused sequence got tokens");
    Require(!Ended(seq.id) && clients_.at(seq.id.request).abort == FinishReason::kNone,
            "an ended sequence got tokens");
    Require(!Contains(plan.preempted, seq.id), "a preempted sequence got tokens");
    // A4: one writer per block.
    for (int32_t b = seq.num_computed / kBlockTokens; b < BlocksFor(seq.num_computed + rows); ++b) {
      Require(written.insert(seq.block_table[static_cast<size_t>(b)]).second,
              "two writers of a block");
    }
  }
  Require(tokens == plan.num_tokens, "tokens do not add up");
}

// First come, first served; S10: also after preemption; none admitted beside a preempted runner.
void World::CheckAdmission(const StepFacts& facts) {
  for (const SequenceId& id : facts.plan.admitted) {
    Require(Contains(facts.waiting, id), "admitted what does not wait");
    for (const SequenceId& other : facts.waiting) {
      const bool passed = other < id && !Paused(other) && !Contains(facts.plan.admitted, other) &&
                          clients_.at(other.request).abort == FinishReason::kNone;
      Require(!passed || Ended(other) || driver_->scheduler().Stats().waiting == 0 ||
                  Nanos(facts.now) >= Nanos(clients_.at(other.request).request.deadline) ||
                  Nanos(facts.now) >= Nanos(clients_.at(other.request).request.time_limit) ||
                  Nanos(facts.now) - Nanos(clients_.at(other.request).request.arrival) >=
                      options_.scheduler.max_queue_ns,
              "a later arrival passed an earlier one");
    }
  }
  for (const SequenceId& id : facts.plan.preempted) {
    Require(Contains(facts.running, id), "preempted what does not run");
    Require(facts.plan.admitted.empty() || Paused(id),
            "admitted in a step that preempted a runner");
  }
}

// S2 and S3: something runnable means a step with tokens; the oldest runner advances and is no
// victim.
void World::CheckProgress(const StepFacts& facts) {
  const auto runnable = [&](SequenceId id) {
    const Client& client = clients_.at(id.request);
    return !client.paused && client.abort == FinishReason::kNone &&
           facts.now < client.request.deadline && facts.now < client.request.time_limit;
  };
  const auto oldest = std::ranges::find_if(facts.running, runnable);
  if (oldest != facts.running.end()) {
    Require(std::ranges::any_of(facts.plan.seqs,
                                [&](const PlannedSeq& seq) { return seq.id == *oldest; }),
            "the oldest did not advance");
  }
  const auto can_start = [&](SequenceId id) {
    return runnable(id) &&
           (Started(id) || Nanos(facts.now) - Nanos(clients_.at(id.request).request.arrival) <
                               options_.scheduler.max_queue_ns);
  };
  if (oldest == facts.running.end() && std::ranges::any_of(facts.waiting, can_start)) {
    Require(facts.plan.num_tokens > 0, "work waits and none runs");
  }
}

void World::MoveShadow(const StepPlan& plan) {
  for (const SequenceId& id : plan.preempted) {
    std::erase(running_, id);
    InsertByArrival(waiting_, id);
  }
  for (const SequenceId& id : plan.admitted) {
    std::erase(waiting_, id);
    InsertByArrival(running_, id);
    started_[id] = true;
  }
}

// L1, L2, L4: one end, nothing behind it, and within the step in which its cause was known.
void World::CheckEvents(const StepFacts& facts) {
  for (const auto& [id, output] : driver_->outputs()) {
    Require(output.finishes <= 1, "two ends of one sequence");
    Require(output.events_after_finish == 0, "an event behind the end");
    if (output.finishes == 0) continue;
    std::erase(running_, id);
    std::erase(waiting_, id);
  }
  for (auto& [request_id, client] : clients_) {
    for (const SequenceId& id : client.ids) {
      if (client.abort != FinishReason::kNone)
        Require(Ended(id), "aborted, and not ended by this step");
      const bool late =
          facts.now >= client.request.deadline || facts.now >= client.request.time_limit;
      if (late) Require(Ended(id), "out of time, and not ended by this step");
      if (!client.aborted_in_step || !Contains(facts.running, id)) continue;
      Require(driver_->outputs().at(id).finish == FinishReason::kAborted,
              "aborted in a step, but it went on");
    }
  }
  const SchedulerStats stats = driver_->scheduler().Stats();
  int32_t active = 0;
  for (const SequenceId& id : running_) active += !Paused(id);
  Require(stats.running == active, absl::StrCat(stats.running, " run, should be ", active));
  Require(static_cast<size_t>(stats.running + stats.waiting) == running_.size() + waiting_.size(),
          "a sequence is lost");
}

// A9, L1, L6 at the end of the world, and D1 for every output.
void World::CheckOutputs() {
  const SchedulerStats stats = driver_->scheduler().Stats();
  Require(stats.blocks_used == 0 && stats.blocks_free == stats.blocks_total,
          "blocks held by nobody");
  Require(stats.running == 0 && stats.waiting == 0 && stats.waiting_tokens == 0,
          "something is left");
  Require(stats.sequences_started == stats.sequences_finished, "outcomes do not add up");
  for (const auto& [request_id, client] : clients_) {
    for (const SequenceId& id : client.ids) {
      Require(Ended(id), "a sequence without an end");
      CheckEnd(client, driver_->outputs().at(id));
      if (problem_.empty()) CheckAlone(client, id);
    }
  }
}

// The stop rules, restated: where an end token may stand, and how long an output may be.
void World::CheckEnd(const Client& client, const Output& output) {
  const Request& request = client.request;
  const auto room =
      std::min(options_.scheduler.context_tokens, options_.num_blocks * kBlockTokens) -
      static_cast<int32_t>(request.prompt.size());
  const auto longest = static_cast<size_t>(std::min(request.stop.max_tokens, room));
  Require(output.tokens.size() <= longest, "longer than asked");
  Require(output.finish != FinishReason::kLength || output.tokens.size() == longest,
          "shorter than its length");
  for (size_t i = 0; i < output.tokens.size(); ++i) {
    if (std::ranges::find(request.stop.eos_ids, output.tokens[i]) == request.stop.eos_ids.end())
      continue;
    Require(static_cast<int32_t>(i) >= request.stop.min_tokens, "an end below min_tokens");
    Require(i + 1 == output.tokens.size() && output.finish == FinishReason::kStop,
            "went on behind an end");
  }
}

// D1: the same tokens as alone in a large pool; a prefix of them where something cut the run short.
void World::CheckAlone(const Client& client, SequenceId id) {
  const Output& output = driver_->outputs().at(id);
  StepDriverOptions options = options_;
  options.scheduler.step_tokens = 64;
  options.scheduler.max_running = 2;
  options.scheduler.max_queue_ns = INT64_MAX / 2;
  options.scheduler.max_waiting_tokens = 1 << 20;
  options.num_blocks = 40;
  StepDriver alone(options);
  Request request = client.request;
  request.arrival = MonotonicTime{1};
  request.deadline = request.time_limit = MonotonicTime::kInfinite;
  // The small pool may have cut it: that is part of its result.
  const int32_t pool_tokens =
      options_.num_blocks * kBlockTokens - static_cast<int32_t>(request.prompt.size());
  request.stop.max_tokens = std::min(request.stop.max_tokens, pool_tokens);
  if (!alone.scheduler().Add(request).ok()) return Require(false, "refused alone");
  alone.RunUntilIdle(10'000);
  const Output& expected = alone.outputs().at(id);
  const bool whole = output.finish == FinishReason::kLength ||
                     output.finish == FinishReason::kError ||
                     (output.finish == FinishReason::kStop && client.abort == FinishReason::kNone);
  if (whole) {
    Require(output.finish == expected.finish && output.tokens == expected.tokens,
            "not what it is alone");
  } else {
    Require(output.tokens.size() <= expected.tokens.size() &&
                std::equal(output.tokens.begin(), output.tokens.end(), expected.tokens.begin()),
            "cut short, and not a beginning of what it is alone");
  }
}

}  // namespace quire
