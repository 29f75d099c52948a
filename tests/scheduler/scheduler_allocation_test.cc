// A step allocates nothing, whatever it does: decode, preemption, recompute, prefix hits with their
// copies and evictions, deferrals, forks, windows. Only Add and the end of a request touch the
// heap.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "scheduler/batch_builder.h"
#include "scheduler/scheduler.h"
#include "tests/testing/count_allocations.h"
#include "tests/testing/requests.h"
#include "tests/testing/scheduler_peer.h"

namespace quire {
namespace {

struct Load {
  SchedulerOptions options;
  int32_t num_blocks = 0;
  std::vector<std::pair<int64_t, Request>> arrivals{};  // before step i, in order
  int64_t resume_at = 0;  // until this step whoever forks is paused, like slow readers
};

struct Seen {
  int64_t allocations = 0, steps = 0, copies = 0, deferred = 0;
  size_t most_running = 0;
  std::vector<RequestId> forked{};
  SchedulerStats stats{};
};

RunnerLimits LimitsOf(const Load& load) {
  return {.num_blocks = load.num_blocks,
          .vocab_size = 300,
          .context_tokens = load.options.context_tokens,
          .max_rows = load.options.step_tokens,
          .max_seqs = load.options.max_running,
          .max_logits_rows = load.options.max_running};
}

void Observe(const StepPlan& plan, Seen& seen) {
  ++seen.steps;
  seen.copies += static_cast<int64_t>(plan.copies.size());
  seen.deferred += static_cast<int64_t>(plan.deferred.size());
  for (const PlannedSeq& seq : plan.seqs) {
    if (seq.num_draws > 1) seen.forked.push_back(seq.id.request);
  }
}

// Serves the load to its end, and counts what its steps allocate.
Seen Serve(const Load& load) {
  Scheduler scheduler(load.options, load.num_blocks);
  BatchBuilder builder(LimitsOf(load));
  std::vector<Sampled> sampled(static_cast<size_t>(load.options.max_running));
  std::vector<TokenEvent> events;
  events.reserve(256);
  Seen seen;
  seen.forked.reserve(64);
  size_t next = 0;
  while (next < load.arrivals.size() || scheduler.HasWork() || seen.steps <= load.resume_at) {
    for (; next < load.arrivals.size() && load.arrivals[next].first <= seen.steps; ++next) {
      EXPECT_TRUE(scheduler.Add(load.arrivals[next].second).ok());
    }
    for (RequestId id : seen.forked) scheduler.SetPaused(id, seen.steps < load.resume_at);
    events.clear();
    {
      const AllocationCounter counter;
      const StepPlan& plan = scheduler.Schedule(MonotonicTime{1});
      size_t draws = 0;
      if (plan.num_tokens > 0) {
        builder.Build(plan);
        draws = builder.specs().size();
        scheduler.ObserveStep(100'000);
      }
      for (size_t i = 0; i < draws; ++i) {
        sampled[i].sequence = builder.specs()[i].sequence;
        sampled[i].token = TokenId{7};
      }
      Observe(plan, seen);
      scheduler.Commit(std::span<const Sampled>(sampled).first(draws), events);
      seen.allocations += counter.ours();
    }
    scheduler.CheckInvariants();
    seen.most_running =
        std::max(seen.most_running, SchedulerTestPeer::Get(scheduler).running.items().size());
    if (seen.steps > 100'000) {
      ADD_FAILURE() << "work is left";
      break;
    }
  }
  seen.stats = scheduler.Stats();
  return seen;
}

// Its first `shared` tokens are those of all such requests.
Request Sharing(uint64_t id, int32_t shared, int32_t own, int32_t max_tokens) {
  Request request = MakeRequest(id, own, max_tokens);
  const std::vector<TokenId> prefix = RandomTokens(999, shared);
  request.prompt.insert(request.prompt.begin(), prefix.begin(), prefix.end());
  return request;
}

TEST(SchedulerAllocation, DecodesAndPreemptionsMakeNone) {
  Load load{.options = {.context_tokens = 320,
                        .step_tokens = 48,
                        .max_running = 3,
                        .target_itl_ns = 1'000'000},
            .num_blocks = 5};
  for (uint64_t id = 1; id <= 5; ++id) {
    Request request = MakeRequest(id, 50, 200);
    request.stop.eos_ids = {TokenId{299}};
    request.stop.min_tokens = 3;
    request.priority = id == 5 ? 2 : 0;
    request.tenant = static_cast<int32_t>(id);
    load.arrivals.emplace_back(id == 5 ? 20 : 0, std::move(request));
  }
  const Seen seen = Serve(load);
  EXPECT_EQ(seen.allocations, 0);
  EXPECT_GT(seen.stats.preemptions_for_blocks, 0);
  EXPECT_GT(seen.stats.preemptions_for_priority, 0);
  EXPECT_EQ(seen.stats.sequences_finished, 5);
}

TEST(SchedulerAllocation, PrefixHitsCopiesEvictionsAndDeferralsMakeNone) {
  Load load{.options = {.context_tokens = 640, .step_tokens = 400, .max_running = 8},
            .num_blocks = 24};
  for (uint64_t id = 1; id <= 40; ++id) {
    const auto wave = static_cast<int64_t>(id / 4);
    load.arrivals.emplace_back(25 * wave, Sharing(id, id % 8 < 4 ? 300 : 90, 20, 30));
  }
  const Seen seen = Serve(load);
  EXPECT_EQ(seen.allocations, 0);
  EXPECT_GT(seen.stats.prefix_hit_tokens, 3000);
  EXPECT_GT(seen.stats.block_evictions, 10);
  EXPECT_GT(seen.copies, 10);
  EXPECT_GT(seen.deferred, 0);
  EXPECT_EQ(seen.stats.sequences_finished, 40);
}

// Tables that share most of their blocks are longer in sum than the pool.
TEST(SchedulerAllocation, LongSharedTablesMakeNone) {
  Load load{.options = {.context_tokens = 1024, .step_tokens = 256, .max_running = 16},
            .num_blocks = 40};
  load.arrivals.emplace_back(0, Sharing(1, 700, 1, 2));
  for (uint64_t id = 2; id <= 17; ++id) load.arrivals.emplace_back(10, Sharing(id, 700, 1, 20));
  const Seen seen = Serve(load);
  EXPECT_EQ(seen.allocations, 0);
  EXPECT_GT(seen.stats.prefix_hit_tokens, 16 * 640);
}

TEST(SchedulerAllocation, ForksMakeNone) {
  Load load{.options = {.context_tokens = 640, .step_tokens = 64, .max_running = 6},
            .num_blocks = 12};
  for (uint64_t id = 1; id <= 12; ++id) {
    Request request = Sharing(id, 65, static_cast<int32_t>(1 + id % 3), 250);
    request.num_sequences = 4;
    load.arrivals.emplace_back(static_cast<int64_t>(8 * id), std::move(request));
  }
  const Seen seen = Serve(load);
  EXPECT_EQ(seen.allocations, 0);
  EXPECT_GT(seen.forked.size(), 4u);
  EXPECT_GT(seen.copies, 10);
  EXPECT_GT(seen.stats.preemptions, 0);
  EXPECT_EQ(seen.stats.sequences_finished, 48);
}

// Outputs of slow readers that have only just parted share all their blocks: more of them run than
// the pool has blocks.
TEST(SchedulerAllocation, MoreSequencesThanBlocksMakeNone) {
  Load load{.options = {.context_tokens = 192, .step_tokens = 64, .max_running = 4},
            .num_blocks = 12,
            .arrivals = {},
            .resume_at = 20};
  for (uint64_t id = 1; id <= 8; ++id) {
    Request request = Sharing(id, 64, 1, 60);
    request.num_sequences = 4;
    load.arrivals.emplace_back(0, std::move(request));
  }
  const Seen seen = Serve(load);
  EXPECT_EQ(seen.allocations, 0);
  EXPECT_EQ(seen.most_running, 32u);
  EXPECT_EQ(seen.stats.sequences_finished, 32);
}

TEST(SchedulerAllocation, WindowsMakeNone) {
  Load load{.options = {.context_tokens = 1024, .step_tokens = 96, .max_running = 4},
            .num_blocks = 10};
  for (uint64_t id = 1; id <= 12; ++id) {
    Request request = Sharing(id, 100, 30, 400);
    request.kv = {.window_tokens = id % 2 == 0 ? 70 : 100, .sink_tokens = id % 2 == 0 ? 4 : 0};
    if (id % 4 == 0) request.num_sequences = 2;
    load.arrivals.emplace_back(static_cast<int64_t>(30 * id), std::move(request));
  }
  const Seen seen = Serve(load);
  EXPECT_EQ(seen.allocations, 0);
  EXPECT_GT(seen.stats.prefix_hit_tokens, 0);
  EXPECT_GT(seen.stats.preemptions, 0);
  EXPECT_EQ(seen.stats.sequences_finished, 15);
}

}  // namespace
}  // namespace quire
