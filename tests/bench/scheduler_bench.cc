// What the scheduler costs beside the step that it plans: microseconds of Schedule and Commit per
// step, by the shape of the load, and of looking up one prompt in the prefix index.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "absl/log/check.h"
#include "scheduler/block_pool.h"
#include "scheduler/prefix_index.h"
#include "scheduler/scheduler.h"
#include "tests/testing/requests.h"

namespace quire {
namespace {

constexpr int32_t kSteps = 60;  // fewer than a block has tokens: nobody grows

struct Load {
  int32_t running = 0, places = 64, waiting = 0;
  int32_t spare_blocks = 0;     // beside those that the running ones hold
  int32_t waiting_tokens = 10;  // prompt of each
  bool priorities = false;      // and tenants: of all kinds, else all equal
};

std::unique_ptr<Scheduler> Make(const Load& load) {
  SchedulerOptions options{.context_tokens = 8192,
                           .step_tokens = std::max(128, 2 * load.places),  // all start at once
                           .max_running = load.places};
  options.max_waiting = 1024;
  auto scheduler = std::make_unique<Scheduler>(options, load.running + load.spare_blocks);
  uint64_t id = 1;
  for (int32_t i = 0; i < load.running; ++i) {
    CHECK_OK(scheduler->Add(MakeRequest(id++, 2, kSteps)));
  }
  return scheduler;
}

void AddWaiting(Scheduler& scheduler, const Load& load) {
  TestRandom random(1);
  for (int32_t i = 0; i < load.waiting; ++i) {
    Request request = MakeRequest(1000 + static_cast<uint64_t>(i), load.waiting_tokens, 20);
    if (load.priorities) {
      request.priority = random.Between(kMinPriority, 0);
      request.tenant = random.Between(0, 15);
    }
    CHECK_OK(scheduler.Add(std::move(request)));
  }
}

void BM_Step(benchmark::State& state, const Load& load) {
  using Clock = std::chrono::steady_clock;
  std::vector<Sampled> sampled;
  std::vector<TokenEvent> events;
  events.reserve(256);
  for (auto _ : state) {
    const std::unique_ptr<Scheduler> scheduler = Make(load);
    Clock::duration time{};
    for (int32_t i = 0; i < kSteps - 4; ++i) {
      if (i == 3) AddWaiting(*scheduler, load);
      events.clear();
      const Clock::time_point start = Clock::now();
      const StepPlan& plan = scheduler->Schedule(MonotonicTime{1'000'000'000});
      const Clock::time_point planned = Clock::now();
      sampled.clear();
      for (const PlannedSeq& seq : plan.seqs) {
        if (seq.num_logits == 0) continue;
        sampled.emplace_back().sequence = seq.id;
        sampled.back().token = TokenId{7};
      }
      const Clock::time_point drawn = Clock::now();
      scheduler->Commit(sampled, events);
      if (i >= 3) time += (planned - start) + (Clock::now() - drawn);
    }
    state.SetIterationTime(std::chrono::duration<double>(time).count() / (kSteps - 7));
  }
}

BENCHMARK_CAPTURE(BM_Step, one_sequence, Load{.running = 1, .spare_blocks = 8})->UseManualTime();
BENCHMARK_CAPTURE(BM_Step, batch_of_32, Load{.running = 32, .places = 32, .spare_blocks = 8})
    ->UseManualTime();
BENCHMARK_CAPTURE(BM_Step, batch_of_256, Load{.running = 256, .places = 256, .spare_blocks = 8})
    ->UseManualTime();
BENCHMARK_CAPTURE(BM_Step, full_batch, Load{.running = 64, .spare_blocks = 8})->UseManualTime();
BENCHMARK_CAPTURE(BM_Step, full_batch_and_queue,
                  Load{.running = 64, .waiting = 256, .spare_blocks = 8, .priorities = true})
    ->UseManualTime();
// Places are free, blocks are not: a step looks behind the requests that do not fit.
BENCHMARK_CAPTURE(BM_Step, blocked_queue,
                  Load{.running = 32,
                       .waiting = 256,
                       .spare_blocks = 1,
                       .waiting_tokens = 100,
                       .priorities = true})
    ->UseManualTime();

// A tree of 2,000 blocks: tenants, each with a system prompt of 8 blocks, behind it conversations
// of 8 more, the last of which is not full.
class Tree {
 public:
  static constexpr int32_t kBlocks = 2000, kDepth = 8;

  explicit Tree(int32_t tenants) : pool_(kBlocks), index_(pool_, {.seed = 42}) {
    const auto publish = [&](const Prompt& prompt, size_t begin, size_t end, BlockId parent) {
      for (size_t i = begin; i < end; i += kBlockTokens) {
        const size_t count = std::min<size_t>(kBlockTokens, end - i);
        parent = index_.Publish(parent, prompt.scope,
                                std::span<const TokenId>(prompt.tokens).subspan(i, count),
                                pool_.Allocate());
      }
      return parent;
    };
    std::vector<BlockId> systems;
    for (int32_t t = 0; t < tenants; ++t) {
      const Prompt prompt = MakePrompt(t, 0);
      systems.push_back(publish(prompt, 0, kSystem, BlockId::kNone));
    }
    for (uint64_t id = 1; pool_.num_free() >= kDepth; ++id) {
      const auto tenant = static_cast<int32_t>(id % static_cast<uint64_t>(tenants));
      prompts_.push_back(MakePrompt(tenant, id));
      const Prompt& prompt = prompts_.back();
      publish(prompt, kSystem, prompt.tokens.size() - 20, systems[static_cast<size_t>(tenant)]);
    }
  }

  struct Prompt {
    CacheScope scope;
    std::vector<TokenId> tokens;
  };
  // The system prompt of the tenant, and what no other conversation has.
  static Prompt MakePrompt(int32_t tenant, uint64_t id) {
    Prompt prompt{.scope = {.domain = {.hi = 0, .lo = static_cast<uint64_t>(tenant)}, .kv = {}},
                  .tokens = RandomTokens(1000 + static_cast<uint64_t>(tenant), kSystem, 49152)};
    const std::vector<TokenId> own = RandomTokens(5000 + id, kDepth * kBlockTokens, 49152);
    prompt.tokens.insert(prompt.tokens.end(), own.begin(), own.end());
    return prompt;
  }
  const PrefixIndex& index() const { return index_; }
  const std::vector<Prompt>& prompts() const { return prompts_; }  // that are in the tree

 private:
  static constexpr int32_t kSystem = kDepth * kBlockTokens;
  BlockPool pool_;
  PrefixIndex index_;
  std::vector<Prompt> prompts_;
};

void LookUp(benchmark::State& state, const Tree& tree, const std::vector<Tree::Prompt>& prompts,
            int32_t tokens_expected) {
  std::vector<BlockId> storage(64);
  size_t next = 0;
  for (auto _ : state) {
    const Tree::Prompt& prompt = prompts[next++ % prompts.size()];
    const PrefixMatch match = tree.index().Find(prompt.scope, prompt.tokens, storage);
    CHECK_EQ(match.tokens(), tokens_expected);
  }
}

// 1,024 tokens, of which all but the last 20 are known.
void BM_PrefixLookupOfAKnownPrompt(benchmark::State& state) {
  const Tree tree(8);
  LookUp(state, tree, tree.prompts(), 1004);
}
BENCHMARK(BM_PrefixLookupOfAKnownPrompt);

// Of a new conversation: the children of the system prompt are looked at one by one, all (about 30)
// or as many as may be.
void BM_PrefixLookupOfAKnownSystemPrompt(benchmark::State& state) {
  const auto tenants = static_cast<int32_t>(state.range(0));
  const Tree tree(tenants);
  std::vector<Tree::Prompt> prompts;
  for (int32_t i = 0; i < 64; ++i) {
    prompts.push_back(Tree::MakePrompt(i % tenants, 100'000 + static_cast<uint64_t>(i)));
    prompts.back().tokens[512] = TokenId{60000};
  }
  LookUp(state, tree, prompts, 512);
}
BENCHMARK(BM_PrefixLookupOfAKnownSystemPrompt)->ArgName("tenants")->Arg(8)->Arg(1);

}  // namespace
}  // namespace quire
