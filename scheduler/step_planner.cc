#include "scheduler/step_planner.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "absl/log/check.h"
#include "scheduler/priority.h"
#include "scheduler/step_budget.h"

// Why every step with a runnable sequence makes progress: the active sequence of highest rank is
// granted at least one token, and may take the blocks of all others. Capacity (capacity.h) was
// checked when it was added, so alone it always fits.
//
// Who takes from whom: a running sequence that grows, from those of lower rank (level, then
// arrival; the level is that of leaving the queue); a waiting one, from running ones whose level is
// below its own priority. Age raises the level and so protects, but it takes nothing from anybody:
// who was displaced comes back when there is room, and then cannot be displaced by its like again.
namespace quire {
namespace {

// Waiting sequences without room that a step looks behind: each costs a look at the pool.
constexpr int kMostWithoutRoom = 16;

// Cached tokens that a row at this position reads.
int32_t TokensRead(const Request& request, int32_t position) {
  if (request.kv.window_tokens == 0) return position;
  const int64_t seen = int64_t{request.kv.window_tokens} + request.kv.sink_tokens;
  return static_cast<int32_t>(std::min<int64_t>(position, seen));
}

}  // namespace

StepShape ShapeOf(const StepPlan& plan) {
  StepShape shape;
  for (const PlannedSeq& seq : plan.seqs) {
    const auto rows = static_cast<int32_t>(seq.tokens.size());
    (rows == 1 ? shape.decode_rows : shape.prefill_rows) += rows;
    // The middle row stands for all.
    shape.kv_tokens += int64_t{rows} * TokensRead(*seq.request, seq.num_computed + rows / 2);
  }
  return shape;
}

StepPlanner::StepPlanner(const PlannerOptions& options, const PlannerLinks& links)
    : options_(options),
      waiting_(links.waiting),
      running_(links.running),
      pacer_(links.pacer),
      shares_(links.shares),
      blocks_({.max_running = options.max_running,
               .max_live = options.max_live,
               .max_preemptions = options.queue.max_preemptions},
              links.pool, links.cache, links.waiting, links.running),
      order_(options_.queue, links.shares, options.max_live) {
  const auto seqs = static_cast<size_t>(options.max_running);
  grants_.reserve(seqs);
  candidates_.reserve(seqs);
  uncomputed_.reserve(seqs);
  granting_.reserve(seqs);
  shares_of_step_.reserve(seqs);
  passed_.reserve(options.max_live);
  planned_.reserve(seqs);
  admitted_.reserve(seqs);
  deferred_.reserve(options.max_live);
}

void StepPlanner::Clear() {
  grants_.clear();
  planned_.clear();
  admitted_.clear();
  deferred_.clear();
  blocks_.Clear();
  plan_ = {};
}

const StepPlan& StepPlanner::Plan(MonotonicTime now) {
  Clear();
  Overtake(now);
  GrantRunning(now);
  // Whoever lost its blocks in this step would be the first to take them back.
  if (blocks_.preempted().empty()) Admit(now);
  WritePlan();
  return plan_;
}

bool StepPlanner::AnyMayOvertake() const {
  int32_t highest = kMinPriority, lowest = kMaxPriority;
  for (const Sequence* sequence : waiting_.items()) {
    if (!sequence->paused) highest = std::max(highest, sequence->priority);
  }
  for (const Sequence* sequence : running_.items()) {
    if (!sequence->paused) lowest = std::min(lowest, sequence->level);
  }
  return highest > lowest;
}

// Before running ones are granted anything, those whose priority is above the level of some of them
// start, in their place if it must be.
void StepPlanner::Overtake(MonotonicTime now) {
  if (options_.queue.fcfs || !AnyMayOvertake()) return;
  const auto overtakes = [this](const Sequence& head) {
    return std::ranges::any_of(running_.items(), [&](const Sequence* other) {
      return !other->paused && other->level < head.priority;
    });
  };
  blocks_.BeginAdmission();
  order_.Begin(waiting_.items(), now);
  passed_.clear();
  int without_room = 0;
  while (Sequence* head = order_.Next()) {
    if (overtakes(*head) && without_room < kMostWithoutRoom) {
      blocks_.Look(*head);
      if (blocks_.MakeRoomFor(*head, /*displace=*/true)) {
        Start(*head, 1, now);
        if (AnyPassedEnough()) break;
        continue;
      }
      ++without_room;
    }
    if (!MayPass(*head)) break;
  }
}

// Decodes of running sequences are known; of prompts, the first one's context stands for all.
void StepPlanner::ChooseBudget() {
  StepShape decodes;
  int32_t context = -1;
  for (const Sequence* sequence : candidates_) {
    if (sequence->uncomputed() == 1) {
      ++decodes.decode_rows;
      decodes.kv_tokens += TokensRead(*sequence->request, sequence->num_computed);
    } else if (context < 0) {
      context = TokensRead(*sequence->request, sequence->num_computed);
    }
  }
  budget_ = pacer_.Budget(decodes, std::max(0, context));
}

// By effective priority now, up to the highest level that runs, then arrival: so a prompt of low
// priority gets its turn at the budget, as it got its turn in the queue.
void StepPlanner::OrderByAge(MonotonicTime now) {
  granting_.resize(candidates_.size());
  std::iota(granting_.begin(), granting_.end(), 0);
  if (candidates_.empty() || candidates_.front()->level == candidates_.back()->level) return;
  const int32_t top = candidates_.front()->level;
  const auto key = [&](int32_t i) {
    const Sequence& s = *candidates_[static_cast<size_t>(i)];
    const int32_t level =
        EffectivePriority(s.priority, s.request->arrival, now, options_.queue.ageing_ns);
    return std::tuple(-std::min(level, top), s.order);
  };
  std::ranges::sort(granting_, {}, key);
}

void StepPlanner::GrantRunning(MonotonicTime now) {
  candidates_.clear();
  uncomputed_.clear();
  int32_t places = 0;
  for (Sequence* sequence : running_.items()) {
    if (sequence->paused) continue;
    places += sequence->forks.places;
    if (places > options_.max_running) break;
    candidates_.push_back(sequence);
    uncomputed_.push_back(sequence->uncomputed());
  }
  ChooseBudget();
  OrderByAge(now);
  shares_of_step_.resize(candidates_.size());
  ShareBudget(uncomputed_, granting_, budget_, shares_of_step_);
  // By rank: a victim ranks below the one it makes room for, so it has no grant yet.
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (!candidates_[i]->running) continue;  // preempted just now
    const int32_t tokens = blocks_.GrowFor(*candidates_[i], shares_of_step_[i]);
    CHECK(tokens > 0 || i > 0) << "the first sequence cannot advance";
    if (tokens > 0) grants_.push_back({candidates_[i], tokens});
  }
}

void StepPlanner::Admit(MonotonicTime now) {
  int32_t budget = budget_;
  for (const Grant& grant : grants_) budget -= grant.tokens;
  int32_t places = options_.max_running - running_.num_active();
  if (budget <= 0 || places <= 0 || waiting_.size() == 0) return;
  blocks_.BeginAdmission();
  order_.Begin(waiting_.items(), now);
  passed_.clear();
  int without_room = 0;
  while (budget > 0 && places > 0 && without_room < kMostWithoutRoom) {
    Sequence* head = order_.Next();
    if (head == nullptr) break;
    blocks_.Look(*head);
    if (Defers(*head)) continue;
    if (!blocks_.MakeRoomFor(*head, /*displace=*/false)) {
      if (!MayPass(*head)) break;
      ++without_room;
      continue;
    }
    const int32_t tokens = Start(*head, budget, now);
    grants_.push_back({head, tokens});
    budget -= tokens;
    places -= head->forks.places;
    if (AnyPassedEnough()) break;
  }
}

// A prompt whose next block is being computed for another waits for it instead of computing it
// twice; whoever is behind it does not wait for that.
bool StepPlanner::Defers(Sequence& head) {
  if (options_.queue.fcfs || !blocks_.Defers(head)) return false;
  deferred_.push_back(head.id);
  return true;
}

// Whether others may start before this one, which waits on.
bool StepPlanner::MayPass(Sequence& head) {
  passed_.push_back(&head);
  return !options_.queue.fcfs && head.setbacks.bypasses < options_.queue.max_bypasses;
}

bool StepPlanner::AnyPassedEnough() const {
  return std::ranges::any_of(passed_, [this](const Sequence* sequence) {
    return sequence->setbacks.bypasses >= options_.queue.max_bypasses;
  });
}

// Right behind MakeRoomFor; returns how many of its tokens to compute, at most `budget`.
int32_t StepPlanner::Start(Sequence& head, int32_t budget, MonotonicTime now) {
  waiting_.Remove(head);
  head.forks.places = blocks_.PlacesFor(head, options_.max_running - running_.num_active());
  running_.Insert(head);
  const int32_t tokens = blocks_.Start(head, budget);
  if (!head.started) {
    head.first_scheduled = now;
    shares_.ChargePrompt(head.request->tenant, head.uncomputed());  // without what was cached
  }
  head.started = true;
  admitted_.push_back(head.id);
  for (int32_t i = 1; i <= head.forks.children;
       ++i) {  // they are drawn when its prompt is computed
    Sequence& child = head.forks.owner->sequences[static_cast<size_t>(i)];
    if (!child.started) child.first_scheduled = now;
    child.started = true;
    if (i < head.forks.places) admitted_.push_back(child.id);
  }
  for (Sequence* sequence : passed_) ++sequence->setbacks.bypasses;
  return tokens;
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
                        .num_draws = tokens == sequence->uncomputed() ? sequence->forks.places : 1,
                        .num_prompt = sequence->num_prompt(),
                        .request = sequence->request});
    plan_.num_tokens += tokens;
  }
  plan_.seqs = planned_;
  plan_.admitted = admitted_;
  plan_.deferred = deferred_;
  plan_.copies = blocks_.copies();
  plan_.preempted = blocks_.preempted();
}

}  // namespace quire
