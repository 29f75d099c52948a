#include "scheduler/scheduler.h"

#include <algorithm>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"
#include "scheduler/capacity.h"
#include "scheduler/expiry.h"
#include "scheduler/scheduler_state.h"
#include "scheduler/stop_rules.h"

// The life of a sequence: waiting -> running -> (preempted: waiting again)* -> retired -> gone. It
// can be ended in any state; nothing is taken away between Schedule and Commit, since the plan and
// the batch refer to it.
namespace quire {
namespace {

absl::Status QueueFull(const char* reason, const char* what, int64_t waiting, int64_t limit) {
  return MakeError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("the queue is full: ", waiting, " ", what, " wait, the limit is ", limit),
      {.reason = reason, .metadata = {}, .violations = {}});
}

// Sequences at once, for which storage is made at start: those that wait for their first step, run,
// or are paused with their blocks. Outputs of paused requests that share all their blocks could be
// more; the inbox bounds all that live by max_waiting alone.
size_t MostLive(const SchedulerOptions& options, int32_t num_blocks) {
  return static_cast<size_t>(options.max_waiting) + static_cast<size_t>(options.max_running) +
         static_cast<size_t>(num_blocks);
}

void DescribeEnd(const Sequence& sequence, TokenEvent& event) {
  event.preemptions = sequence.setbacks.preemptions;
  event.cached_prompt_tokens = std::max(0, sequence.cached_prompt_tokens);
  event.first_scheduled = sequence.first_scheduled;
}

}  // namespace

Scheduler::State::State(const SchedulerOptions& options, int32_t num_blocks)
    : options(options),
      pool(num_blocks),
      cache(pool, {.on = options.prefix_cache,
                   .context_tokens = options.context_tokens,
                   .index = {.seed = options.cache_seed, .hash_bits = options.cache_hash_bits}}),
      waiting(MostLive(options, num_blocks)),
      running(MostLive(options, num_blocks)),
      pacer({.step_tokens = options.step_tokens, .target_itl_ns = options.target_itl_ns}),
      shares(options.queue.tenant_weights),
      planner({.max_running = options.max_running,
               .max_live = MostLive(options, num_blocks),
               .queue = options.queue},
              {.pool = pool,
               .cache = cache,
               .waiting = waiting,
               .running = running,
               .pacer = pacer,
               .shares = shares}) {
  CHECK_GE(options.step_tokens, 1);
  CHECK_GE(options.max_running, 1);
  CHECK(options.queue.ageing_ns >= 0 && options.queue.max_bypasses >= 0 &&
        options.queue.max_preemptions >= 0);
  const size_t most = MostLive(options, num_blocks);
  ended.reserve(most);
  retired.reserve(most);
}

Scheduler::Scheduler(const SchedulerOptions& options, int32_t num_blocks)
    : state_(std::make_unique<State>(options, num_blocks)) {}
Scheduler::~Scheduler() = default;

absl::Status Scheduler::Add(Request request) {
  State& s = *state_;
  CHECK(!s.live.contains(request.id)) << "request ids are never reused";
  CHECK(request.priority >= kMinPriority && request.priority <= kMaxPriority) << request.priority;
  CHECK(request.tenant >= 0 && request.tenant < kMaxTenants) << request.tenant;
  if (request.prompt.empty() || request.num_sequences < 1 || request.stop.max_tokens < 1) {
    return absl::InvalidArgumentError(
        "a request needs a prompt, an output and a token to generate");
  }
  if (request.kv.window_tokens < 0 || request.kv.sink_tokens < 0 ||
      (request.kv.window_tokens == 0 && request.kv.sink_tokens > 0)) {
    return absl::InvalidArgumentError("sink tokens need a window, and neither is negative");
  }
  const CapacityLimits limits = {.context_tokens = s.options.context_tokens,
                                 .num_blocks = s.pool.total()};
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const Capacity capacity = CapacityOf(prompt, limits, request.kv);
  if (capacity.verdict != CapacityVerdict::kFits) return PromptTooLong(prompt, capacity, limits);
  const int64_t sequences = int64_t{s.NumWaiting()} + request.num_sequences;
  const int64_t tokens = s.waiting.tokens() + prompt;
  if (sequences > s.options.max_waiting) {
    return QueueFull("QUEUE_FULL", "sequences", s.NumWaiting(), s.options.max_waiting);
  }
  if (tokens > s.options.max_waiting_tokens && s.waiting.size() > 0) {
    return QueueFull("QUEUE_TOKENS_FULL", "tokens", s.waiting.tokens(),
                     s.options.max_waiting_tokens);
  }
  request.stop.max_tokens = std::min(request.stop.max_tokens, capacity.max_new_tokens);

  auto live = std::make_unique<LiveRequest>();
  live->request = std::move(request);
  live->open = live->request.num_sequences;
  live->sequences.reserve(static_cast<size_t>(live->open));
  s.shares.Arrive(live->request.tenant, s.waiting.items());
  for (int32_t i = 0; i < live->open; ++i) {
    Sequence& sequence = live->sequences.emplace_back(live->request, i, s.next_order++, s.pool);
    sequence.priority = s.options.queue.fcfs ? 0 : live->request.priority;
    sequence.level = sequence.priority;
    sequence.setbacks.pinned = s.options.queue.max_preemptions == 0;
    sequence.forks.owner = live.get();
    sequence.forks.pending = i > 0;
  }
  live->sequences.front().forks.children = live->open - 1;
  s.waiting.Insert(live->sequences.front());
  s.sequences_started += live->open;
  const RequestId id = live->request.id;
  s.live.emplace(id, std::move(live));
  return absl::OkStatus();
}

void Scheduler::Abort(RequestId id, FinishReason reason) {
  CHECK(reason != FinishReason::kNone);
  const auto found = state_->live.find(id);
  if (found == state_->live.end()) return;
  for (Sequence& sequence : found->second->sequences) state_->End(sequence, reason);
}

void Scheduler::AbortOutput(SequenceId id, FinishReason reason) {
  CHECK(reason != FinishReason::kNone);
  const auto found = state_->live.find(id.request);
  if (found == state_->live.end()) return;
  state_->End(found->second->sequences.at(static_cast<size_t>(id.output_index)), reason);
}

void Scheduler::SetPaused(RequestId id, bool paused) {
  const auto found = state_->live.find(id);
  if (found == state_->live.end()) return;
  for (Sequence& sequence : found->second->sequences) sequence.paused = paused;
}

void Scheduler::State::End(Sequence& sequence, FinishReason reason) {
  if (sequence.ended()) return;
  sequence.ending = reason;
  ended.push_back(&sequence);
  for (int32_t i = 1; i <= sequence.forks.children; ++i) {  // they cannot go on without it
    End(sequence.forks.owner->sequences[static_cast<size_t>(i)], reason);
  }
}

void Scheduler::State::Expire(MonotonicTime now) {
  const auto check = [&](Sequence& sequence) {
    const Expiry expiry = ExpiryOf(*sequence.request, sequence.started, options.max_queue_ns);
    if (expiry.time <= now && expiry.reason != FinishReason::kNone) End(sequence, expiry.reason);
  };
  for (Sequence* sequence : running.items()) check(*sequence);
  for (Sequence* sequence : waiting.items()) check(*sequence);
}

void Scheduler::State::Retire(Sequence& sequence) {
  if (sequence.running) {
    running.Remove(sequence);
  } else if (!sequence.forks.pending) {
    waiting.Remove(sequence);
  }
  if (sequence.ending != FinishReason::kError) cache.PublishTail(sequence);
  sequence.blocks.Release();
  ++sequences_finished;
  pacer.ObserveEnd();
}

void Scheduler::State::RetireEnded() {
  for (Sequence* sequence : ended) {
    Retire(*sequence);
    retired.push_back(sequence);
  }
  ended.clear();
}

const StepPlan& Scheduler::Schedule(MonotonicTime now) {
  State& s = *state_;
  CHECK(!s.step_open) << "Schedule without Commit";
  s.step_open = true;
  s.Expire(now);
  s.RetireEnded();
  return s.planner.Plan(now);
}

void Scheduler::ObserveStep(int64_t nanos) {
  State& s = *state_;
  CHECK(s.step_open) << "ObserveStep without Schedule";
  if (s.planner.plan().num_tokens > 0) s.pacer.Observe(ShapeOf(s.planner.plan()), nanos);
}

void Scheduler::Commit(std::span<const Sampled> sampled, std::vector<TokenEvent>& events) {
  State& s = *state_;
  CHECK(s.step_open) << "Commit without Schedule";
  s.step_open = false;
  size_t next = 0;  // the sampler keeps the order of the plan
  const std::span<const PlannedSeq> seqs = s.planner.plan().seqs;
  for (size_t i = 0; i < seqs.size(); ++i) {
    Sequence& sequence = *s.planner.grants()[i].sequence;
    s.CommitRows(s.planner.grants()[i]);
    if (seqs[i].num_logits == 0) continue;
    const auto draws = static_cast<size_t>(seqs[i].num_draws);
    CHECK_LE(next + draws, sampled.size()) << "draws do not match the plan";
    s.CommitDraws(sequence, sampled.subspan(next, draws), events);
    next += draws;
  }
  s.planner.Clear();
  s.RetireEnded();
  for (Sequence* sequence : s.retired) {
    TokenEvent& event = events.emplace_back();
    event.sequence = sequence->id;
    event.finish = sequence->ending;
    DescribeEnd(*sequence, event);
    s.CloseFinished(*sequence);
  }
  s.retired.clear();
}

// One draw each of the sequence and the outputs that part from it here.
void Scheduler::State::CommitDraws(Sequence& first, std::span<const Sampled> draws,
                                   std::vector<TokenEvent>& events) {
  CHECK(draws[0].sequence == first.id) << "draws do not match the plan";
  if (first.ended()) return;  // aborted while the step ran: its token is dropped
  LiveRequest& request = *first.forks.owner;
  const auto index = static_cast<size_t>(first.id.output_index);
  if (first.forks.children > 0) Fork(first);
  for (size_t i = 0; i < draws.size(); ++i) {  // the last one that ends takes the request with it
    Sequence& sequence = request.sequences[index + i];
    CHECK(draws[i].sequence == sequence.id) << "draws do not match the plan";
    events.push_back(CommitDraw(sequence, draws[i]));
    if (events.back().finish == FinishReason::kNone) continue;
    sequence.ending = events.back().finish;
    Retire(sequence);
    CloseFinished(sequence);
  }
}

// The prompt is computed: the other outputs share its blocks, those that have a place in the batch;
// the rest wait for one, and find the prompt in the cache.
void Scheduler::State::Fork(Sequence& first) {
  for (int32_t i = 1; i <= first.forks.children; ++i) {
    Sequence& child = first.forks.owner->sequences[static_cast<size_t>(i)];
    child.forks.pending = false;
    child.computed_before = first.num_computed;
    child.cached_prompt_tokens = first.cached_prompt_tokens;
    child.level = first.level;
    if (i < first.forks.places) {
      child.blocks.Share(first.blocks);
      child.num_computed = first.num_computed;
      running.Insert(child);
    } else {
      waiting.Insert(child);
    }
  }
  first.forks.children = 0;
  first.forks.places = 1;
}

void Scheduler::State::CommitRows(const StepPlanner::Grant& grant) {
  Sequence& sequence = *grant.sequence;
  const int32_t begin = sequence.num_computed;
  const int32_t end = begin + grant.tokens;
  const int32_t again = std::clamp(sequence.computed_before, begin, end);
  const int32_t prompt_end = std::clamp(sequence.num_prompt(), again, end);
  recompute_tokens += again - begin;
  prefill_tokens += prompt_end - again;
  decode_tokens += end - prompt_end;
  shares.CountServed(sequence.request->tenant, end - again);
  sequence.num_computed = end;
  cache.PublishFull(sequence, begin);
  sequence.ReleasePassed();
}

TokenEvent Scheduler::State::CommitDraw(Sequence& sequence, const Sampled& drawn) {
  TokenEvent event;
  event.sequence = sequence.id;
  event.outcome = drawn.outcome;
  if (drawn.outcome == SampleOutcome::kToken) {
    sequence.tokens.push_back(drawn.token);
    shares.ChargeOutput(sequence.request->tenant);
    event.token = drawn.token;
    event.logprob = drawn.logprob;
    event.rank = drawn.rank;
    event.top_count = drawn.top_count;
    std::copy_n(drawn.top.begin(), drawn.top_count, event.top.begin());
    event.finish = FinishAfter(sequence.request->stop, drawn.token, sequence.num_output());
  } else {
    event.finish = FinishReason::kError;
    if (drawn.outcome == SampleOutcome::kNonFinite) cache.Withdraw(sequence);
  }
  if (event.finish != FinishReason::kNone) DescribeEnd(sequence, event);
  return event;
}

void Scheduler::State::CloseFinished(Sequence& sequence) {
  const auto found = live.find(sequence.id.request);
  CHECK(found != live.end());
  if (--found->second->open == 0) live.erase(found);
}

}  // namespace quire
