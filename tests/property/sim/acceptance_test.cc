// The acceptance load of the scheduler: 200 requests of every kind at once against a pool that
// holds about eight of them. Each step keeps every rule of the simulation (one end per request,
// outputs as alone, bounds of bypasses and preemptions); here the waits are looked at as well.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/property/sim/sim_world.h"
#include "tests/testing/mix.h"

namespace quire::sim {
namespace {

constexpr uint32_t kRequests = 200;
constexpr int32_t kBlocks = 16;  // a request needs one to four, two on average

Config LoadConfig(bool fcfs) {
  return {.num_blocks = kBlocks,
          .context_tokens = 1024,
          .step_tokens = 128,
          .max_running = 16,
          .max_waiting = 1000,
          .max_waiting_tokens = 1'000'000,
          .fcfs = fcfs,
          .ageing_ns = 200,
          .max_bypasses = 16,
          .max_preemptions = 4,
          .weight_0 = 2};
}

Submit MixedRequest(TestRandom& random, uint32_t id) {
  Submit submit{.id = id};
  submit.prompt = random.Chance(20) ? random.Between(100, 190) : random.Between(1, 70);
  submit.max_tokens = random.Chance(20) ? random.Between(40, 66) : random.Between(1, 30);
  submit.n = random.Chance(10) ? random.Between(2, 4) : 1;
  submit.priority = random.Chance(40) ? random.Between(-10, 10) : 0;
  submit.tenant = random.Between(0, 2);
  submit.shared = random.Chance(30) ? std::min(submit.prompt, 64) : 0;
  submit.deadline = random.Chance(10) ? random.Between(0, 600) : -1;
  submit.time_limit = random.Chance(10) ? random.Between(0, 600) : -1;
  submit.min_tokens = random.Chance(30) ? 0 : -1;
  submit.sampled = random.Chance(50);
  return submit;
}

// All arrive within the first 100 steps, some are cancelled, some readers stall for a while.
Case MixedLoad(uint64_t seed, bool fcfs) {
  TestRandom random(seed);
  Case c{.config = LoadConfig(fcfs), .ops = {}};
  uint32_t id = 1;
  while (id <= kRequests) {
    for (int32_t i = random.Between(0, 4); i > 0 && id <= kRequests; --i) {
      c.ops.push_back(Add(MixedRequest(random, id++)));
    }
    const auto any = static_cast<uint32_t>(random.Between(1, static_cast<int32_t>(id)));
    if (random.Chance(10)) c.ops.push_back(Abort(any, FinishReason::kCancelled));
    if (random.Chance(10)) c.ops.push_back(Stall(any));
    if (random.Chance(20)) c.ops.push_back(Resume(any));
    c.ops.push_back(Step(1, random.Chance(3) ? Fault::kAbort : Fault::kNone, 3));
  }
  for (int32_t i = 0; i < 500; ++i) {
    const auto any = static_cast<uint32_t>(random.Between(1, kRequests));
    if (random.Chance(5)) c.ops.push_back(Stall(any));
    if (random.Chance(20)) c.ops.push_back(Resume(any));
    c.ops.push_back(Step(1));
  }
  return c;
}

class Acceptance : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Order, Acceptance, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Strict" : "Fair");
});

TEST_P(Acceptance, TwoHundredMixedRequestsOnAPoolOfEightEndOnceAsAlone) {
  Coverage seen;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Result result = RunCase(MixedLoad(seed, GetParam()));
    ASSERT_EQ(result.problem, "") << "seed " << seed;
    EXPECT_EQ(result.coverage.accepted, kRequests);
    seen.Merge(result.coverage);
  }
  std::printf("%s\n", ToText(seen).c_str());
  EXPECT_GE(seen.whole, 10 * 140);
  EXPECT_GE(seen.preemptions, 100);
  EXPECT_GE(seen.timed_out_waiting + seen.timed_out_running, 50);
  EXPECT_GE(seen.forks, 100);
  EXPECT_GE(seen.hits, 100);
}

// The wait of one more request of the lowest priority, behind a load that has come before it, and
// with an endless stream of urgent ones behind it: no longer than the stated bound. It rises a
// level each ageing_ns; then nobody that came later goes first, beside max_bypasses that fit where
// it does not; and whoever runs is done after its tokens.
TEST(AcceptanceBound, TheLowestPriorityStartsWithinItsBound) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    TestRandom random(seed);
    const Config config = LoadConfig(false);
    World world(config);
    uint32_t id = 1;
    int64_t rows_ahead = 0;
    for (; id <= 40; ++id) {
      const Submit submit{.id = id, .prompt = random.Between(1, 190), .max_tokens = 60};
      world.Apply(Add(submit));
      rows_ahead += submit.prompt + submit.max_tokens;
    }
    const uint32_t last = id++;
    world.Apply(Add({.id = last, .prompt = 180, .max_tokens = 60, .priority = -10}));
    // In each step at least one row is computed, most often a whole budget.
    const int64_t bound = 21 * config.ageing_ns + rows_ahead + (config.max_bypasses + 1) * 250;
    int64_t waited = 0;
    while (world.Find(last) != nullptr && !world.Find(last)->seqs[0].started) {
      // Urgent ones as many as are served: the queue of them is never empty.
      if (world.open() < 60) {
        world.Apply(Add({.id = id++, .prompt = 60, .max_tokens = 8, .priority = 10, .tenant = 1}));
      }
      world.Apply(Step(1));
      ASSERT_EQ(world.result().problem, "");
      ASSERT_LE(++waited, bound) << "seed " << seed;
    }
    world.Settle();
    EXPECT_EQ(world.result().problem, "");
    std::printf("waited %lld steps, the bound is %lld\n", static_cast<long long>(waited),
                static_cast<long long>(bound));
  }
}

// A request of the highest priority under saturation gets its first token within two steps and its
// own prefill.
TEST(AcceptanceBound, AnUrgentRequestGetsItsFirstTokenInTwoStepsAndItsPrefill) {
  for (int32_t prompt : {1, 60, 128, 180, 500}) {
    World world(LoadConfig(false));
    for (uint32_t id = 1; id <= 60; ++id) {
      world.Apply(Add({.id = id, .prompt = 100, .max_tokens = 90}));
    }
    for (int i = 0; i < 40; ++i) world.Apply(Step(1));
    world.Apply(Add({.id = 100, .prompt = prompt, .max_tokens = 20, .priority = 10}));
    int32_t steps = 0;
    while (world.Find(100)->seqs[0].received == 0) {
      world.Apply(Step(1));
      ASSERT_EQ(world.result().problem, "");
      ASSERT_LE(++steps, 2 + (prompt + 127) / 128) << "prompt of " << prompt;
    }
  }
}

}  // namespace
}  // namespace quire::sim
