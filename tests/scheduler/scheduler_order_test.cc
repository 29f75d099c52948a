// Who goes first, who gives way, and that nobody waits for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "scheduler/scheduler.h"
#include "tests/testing/requests.h"
#include "tests/testing/scheduler_peer.h"
#include "tests/testing/step_driver.h"

namespace quire {
namespace {

constexpr MonotonicTime At(int64_t nanos) { return MonotonicTime{nanos}; }

StepDriverOptions Options(int32_t num_blocks, int32_t max_running = 64) {
  return {.scheduler = {.context_tokens = 1024, .step_tokens = 128, .max_running = max_running},
          .num_blocks = num_blocks,
          .model = {}};
}

struct Who {
  int32_t priority = 0, tenant = 0;
};

void Add(StepDriver& driver, Request request, Who who = {}) {
  request.priority = who.priority;
  request.tenant = who.tenant;
  ASSERT_TRUE(driver.scheduler().Add(std::move(request)).ok());
}

std::vector<TokenId> Alone(const Request& request) {
  StepDriver driver(Options(16));
  Add(driver, request);
  driver.RunUntilIdle();
  return driver.output(static_cast<uint64_t>(request.id)).tokens;
}

// Steps until the request has its first token.
int StepsToFirstToken(StepDriver& driver, uint64_t id, MonotonicTime now = At(1)) {
  int steps = 0;
  while (driver.output(id).tokens.empty() && steps < 1000) {
    driver.Step(now);
    ++steps;
  }
  return steps;
}

TEST(SchedulerOrder, HighPriorityTakesAPlaceFromAFullBatch) {
  StepDriver driver(Options(16, 2));
  for (uint64_t id = 1; id <= 4; ++id) Add(driver, MakeRequest(id, 10, 200));
  for (int i = 0; i < 5; ++i) driver.Step();
  Add(driver, MakeRequest(9, 10, 5), {.priority = 1});
  EXPECT_EQ(driver.Step(),
            "11 tokens\n1.0: 14 + 1, blocks 0, draws\n9.0: 0 + 10, blocks 2, draws\n"
            "admitted 9.0\npreempted 2.0\n");
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(2).tokens, Alone(MakeRequest(2, 10, 200)));
  EXPECT_EQ(driver.output(2).preemptions, 1);
  EXPECT_EQ(driver.scheduler().Stats().preemptions_for_priority, 1);
}

TEST(SchedulerOrder, HighPriorityTakesBlocksOfLower) {
  StepDriver driver(Options(6));
  for (uint64_t id = 1; id <= 3; ++id) Add(driver, MakeRequest(id, 100, 20));
  for (int i = 0; i < 5; ++i) driver.Step();
  Add(driver, MakeRequest(9, 120, 5), {.priority = 3});
  EXPECT_EQ(StepsToFirstToken(driver, 9), 1);
  EXPECT_EQ(driver.scheduler().Stats().preemptions_for_priority, 1);
  driver.RunUntilIdle();
  for (uint64_t id = 1; id <= 3; ++id) {
    EXPECT_EQ(driver.output(id).tokens, Alone(MakeRequest(id, 100, 20)));
  }
}

// The promise to urgent requests: two steps and the steps of their own prompt, under any load.
TEST(SchedulerOrder, HighPriorityUnderSaturationHasItsFirstTokenWithinTwoStepsPlusItsPrefill) {
  for (const int32_t prompt : {1, 64, 120, 300}) {
    StepDriver driver(Options(8, 4));
    for (uint64_t id = 1; id <= 40; ++id) {
      Add(driver, MakeRequest(id, 20 + static_cast<int32_t>(id) * 5, 150),
          {.tenant = static_cast<int32_t>(id % 3)});
    }
    for (int i = 0; i < 30; ++i) driver.Step();
    Add(driver, MakeRequest(99, prompt, 5), {.priority = 10, .tenant = 1});
    EXPECT_LE(StepsToFirstToken(driver, 99), 2 + (prompt + 123) / 124) << prompt << " tokens";
    driver.RunUntilIdle();
  }
}

TEST(SchedulerOrder, APromptInProgressYieldsTheBudgetToHigherPriority) {
  StepDriver driver(Options(20));
  Add(driver, MakeRequest(1, 900, 5));
  driver.Step();
  Add(driver, MakeRequest(2, 100, 5), {.priority = 1});
  EXPECT_EQ(driver.Step(),
            "128 tokens\n1.0: 128 + 28, blocks 0 1 4\n2.0: 0 + 100, blocks 2 3, draws\n"
            "admitted 2.0\n")
      << "2 is of higher rank, 1 gets what it leaves";
}

TEST(SchedulerOrder, APromptInProgressAgesToo) {
  StepDriverOptions options = Options(40, 8);
  options.scheduler.queue.ageing_ns = 10;
  StepDriver driver(options);
  Request low = MakeRequest(1, 900, 2);
  low.arrival = At(1);
  Add(driver, low);
  driver.Step(At(1));
  int64_t now = 2;
  for (uint64_t id = 2; driver.output(1).tokens.empty() && now < 500; ++now) {
    while (driver.scheduler().Stats().running + driver.scheduler().Stats().waiting < 4) {
      Request urgent = MakeRequest(id++, 128, 1);
      urgent.arrival = At(now);
      Add(driver, urgent, {.priority = 1});
    }
    driver.Step(At(now));
  }
  EXPECT_LE(now, 1 + 10 + 900 / 128 + 4) << "urgent prompts took the whole budget for ever";
}

TEST(SchedulerOrder, EqualPriorityDisplacesNobody) {
  StepDriver driver(Options(16, 2));
  for (uint64_t id = 1; id <= 2; ++id) Add(driver, MakeRequest(id, 10, 50), {.priority = 4});
  driver.Step();
  Add(driver, MakeRequest(3, 10, 5), {.priority = 4});
  EXPECT_GT(StepsToFirstToken(driver, 3), 40);
  EXPECT_EQ(driver.scheduler().Stats().preemptions, 0);
}

TEST(SchedulerOrder, AnAgedRequestDisplacesNobody) {
  StepDriverOptions options = Options(16, 1);
  options.scheduler.queue.ageing_ns = 10;
  StepDriver driver(options);
  Add(driver, MakeRequest(1, 10, 50), {.priority = 1});
  driver.Step(At(1));
  Add(driver, MakeRequest(2, 10, 5), {.priority = 0});
  for (int i = 0; i < 10; ++i) driver.Step(At(1'000'000));
  EXPECT_EQ(driver.scheduler().Stats().preemptions, 0);
}

TEST(SchedulerOrder, AgedLowPriorityRunsBeforeNewHighPriority) {
  for (const int64_t waited : {199, 200}) {
    StepDriverOptions options = Options(16, 1);
    options.scheduler.queue.ageing_ns = 10;
    StepDriver driver(options);
    Add(driver, MakeRequest(1, 10, 5), {.priority = 10});
    driver.Step(At(1));
    Request old = MakeRequest(2, 10, 5), fresh = MakeRequest(3, 10, 5);
    old.arrival = At(1);
    fresh.arrival = At(1 + waited);
    Add(driver, old, {.priority = -10});
    Add(driver, fresh, {.priority = 10});
    while (driver.output(2).finishes + driver.output(3).finishes == 0) driver.Step(At(1 + waited));
    EXPECT_EQ(driver.output(2).finishes, waited == 200);
    EXPECT_EQ(driver.scheduler().Stats().preemptions, 0);
  }
}

TEST(SchedulerOrder, TheGrowingOneTakesFromLowerPriorityNotFromLaterArrival) {
  StepDriver driver(Options(3));
  Add(driver, MakeRequest(1, 30, 40), {.priority = 0});
  Add(driver, MakeRequest(2, 62, 40), {.priority = 1});
  Add(driver, MakeRequest(3, 20, 40), {.priority = 1});
  driver.Step();
  driver.Step();
  driver.Step();
  EXPECT_EQ(driver.Step(),
            "2 tokens\n2.0: 64 + 1, blocks 0 2, draws\n3.0: 22 + 1, blocks 1, draws\n"
            "preempted 1.0\n");
  driver.RunUntilIdle();
  EXPECT_EQ(driver.scheduler().Stats().preemptions_for_blocks, 1);
}

TEST(SchedulerOrder, ADisplacedRequestNeverTakesItBack) {
  StepDriver driver(Options(4));
  Add(driver, MakeRequest(1, 100, 100), {.priority = 0});
  for (int i = 0; i < 3; ++i) driver.Step();
  Add(driver, MakeRequest(2, 130, 60), {.priority = 2});
  for (int i = 0; i < 300; ++i) driver.Step();
  EXPECT_EQ(driver.output(2).preemptions, 0);
  EXPECT_EQ(driver.output(1).preemptions, 1);
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(1).tokens, Alone(MakeRequest(1, 100, 100)));
}

// Without a block to spare it would come back at once, and lose everything again when the first
// grows.
TEST(SchedulerOrder, ADisplacedRequestComesBackWhenThereIsABlockToSpare) {
  StepDriverOptions options = Options(5);
  options.scheduler.step_tokens = 256;
  StepDriver driver(options);
  Add(driver, MakeRequest(1, 120, 100));
  Add(driver, MakeRequest(2, 10, 14));
  Add(driver, MakeRequest(3, 62, 100));
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(3).preemptions, 1);
  EXPECT_EQ(driver.output(3).tokens, Alone(MakeRequest(3, 62, 100)));
}

TEST(SchedulerOrder, PreemptionsOfARequestAreBounded) {
  StepDriverOptions options = Options(4);
  options.scheduler.queue.max_preemptions = 3;
  StepDriver driver(options);
  Add(driver, MakeRequest(1, 70, 60));
  uint64_t id = 2;
  while (driver.output(1).finishes == 0) {
    driver.Step();
    const Sequence* low = SchedulerTestPeer::Find(driver.scheduler(), {RequestId{1}, 0});
    if (low == nullptr || !low->running) continue;
    if (id == 2 || driver.output(id - 1).finishes > 0) {
      Add(driver, MakeRequest(id++, 180, 2), {.priority = 5});
    }
  }
  driver.RunUntilIdle();
  EXPECT_EQ(driver.output(1).preemptions, 3);
  EXPECT_EQ(id, 2u + 4) << "the last one had to wait";
  EXPECT_EQ(driver.output(1).tokens, Alone(MakeRequest(1, 70, 60)));
}

TEST(SchedulerOrder, SmallOnesPassABigHeadABoundedNumberOfTimes) {
  StepDriverOptions options = Options(4);
  options.scheduler.queue.max_bypasses = 5;
  StepDriver driver(options);
  Add(driver, MakeRequest(1, 70, 100));
  driver.Step();
  Add(driver, MakeRequest(2, 180, 8));  // does not fit beside 1
  driver.Step();
  int passed = 0;
  for (uint64_t id = 3; driver.output(2).tokens.empty() && id < 100; ++id) {
    Add(driver, MakeRequest(id, 10, 2));
    driver.Step();
    driver.Step();
    if (driver.output(2).tokens.empty()) passed += driver.output(id).finishes;
  }
  EXPECT_EQ(passed, 5);
  driver.RunUntilIdle();
}

// One big request and twenty small ones: all of them end soon, whatever the order of arrival.
TEST(SchedulerOrder, NeitherABigRequestNorSmallOnesStarve) {
  for (const bool big_first : {true, false}) {
    StepDriver driver(Options(4, 8));
    if (big_first) Add(driver, MakeRequest(50, 200, 20));
    for (uint64_t id = 1; id <= 20; ++id) Add(driver, MakeRequest(id, 10, 10));
    if (!big_first) Add(driver, MakeRequest(50, 200, 20));
    int steps = 0;
    while (driver.scheduler().HasWork()) {
      driver.Step();
      ++steps;
    }
    EXPECT_LE(steps, 22 + 20 * 10);
    EXPECT_EQ(driver.output(50).finish, FinishReason::kLength);
  }
}

TEST(SchedulerOrder, TenantsShareByWeight) {
  StepDriverOptions options = Options(16, 2);
  options.scheduler.queue.tenant_weights = {1, 3};
  options.scheduler.max_waiting = 1000;
  options.scheduler.max_waiting_tokens = 1 << 20;
  StepDriver driver(options);
  for (uint64_t id = 1; id <= 300; ++id) {
    Add(driver, MakeRequest(id, 20, 10), {.tenant = id <= 150 ? 0 : 1});
  }
  for (int i = 0; i < 400; ++i) driver.Step();
  const auto tenants = driver.scheduler().Tenants();
  const double ratio =
      static_cast<double>(tenants[1].served_tokens) / static_cast<double>(tenants[0].served_tokens);
  EXPECT_NEAR(ratio, 3, 0.3);
}

TEST(SchedulerOrder, ATenantIsNotChargedForWhatWasCached) {
  StepDriver driver(Options(16));
  Request first = MakeRequest(1, 200, 2), again = MakeRequest(2, 200, 2);
  again.prompt = first.prompt;
  Add(driver, first, {.tenant = 1});
  driver.RunUntilIdle();
  Add(driver, again, {.tenant = 1});
  driver.RunUntilIdle();
  const TenantShare& tenant = driver.scheduler().Tenants()[1];
  EXPECT_EQ(tenant.charged, 200 + 1 + 4 * FairShare::kOutputCost);
  EXPECT_EQ(tenant.served_tokens, 200 + 1 + 2);
}

TEST(SchedulerOrder, AFloodDoesNotDelayAnotherTenantsRequest) {
  StepDriverOptions options = Options(16, 2);
  options.scheduler.max_queue_ns = INT64_MAX / 2;
  StepDriver driver(options);
  for (uint64_t id = 1; id <= 100; ++id) Add(driver, MakeRequest(id, 20, 10), {.tenant = 1});
  for (int i = 0; i < 50; ++i) driver.Step();
  Add(driver, MakeRequest(200, 20, 10), {.tenant = 2});
  EXPECT_LE(StepsToFirstToken(driver, 200, At(1'000'000'000'000)), 11) << "the next place is its";
}

// However different their requests: while both wait, neither is ahead by more than a full batch.
TEST(SchedulerOrder, OfTwoTenantsThatAlwaysWaitNoneFallsFarBehind) {
  constexpr int32_t kPlaces = 3;
  StepDriverOptions options = Options(24, kPlaces);
  options.scheduler.max_waiting = 1000;
  options.scheduler.max_waiting_tokens = 1 << 20;
  StepDriver driver(options);
  TestRandom random(5);
  uint64_t id = 1;
  for (int i = 0; i < 40; ++i) {
    Add(driver, MakeRequest(id++, random.Between(200, 300), random.Between(30, 60)), {.tenant = 0});
    for (int j = 0; j < 12; ++j) {
      Add(driver, MakeRequest(id++, random.Between(5, 20), random.Between(1, 20)), {.tenant = 1});
    }
  }
  const auto tenants = driver.scheduler().Tenants();
  for (int i = 0; i < 700; ++i) {
    driver.Step();
    const double ahead = tenants[0].charged - tenants[1].charged;
    ASSERT_LE(std::abs(ahead), kPlaces * (300 + 60 * FairShare::kOutputCost)) << "step " << i;
  }
  EXPECT_GT(tenants[0].served_tokens, 4000);
  EXPECT_GT(tenants[1].served_tokens, 2000);
}

// The starvation bound: urgent requests never stop coming, and still the least of all ends.
TEST(SchedulerOrder, AnEndlessStreamOfUrgentRequestsStarvesNobody) {
  constexpr int64_t kAgeing = 20;
  for (const int32_t tenants : {1, 4}) {
    StepDriverOptions options = Options(8, 2);
    options.scheduler.queue.ageing_ns = kAgeing;
    StepDriver driver(options);
    TestRandom random(3);
    Request least = MakeRequest(1, 50, 30);
    least.arrival = At(1);
    Add(driver, least, {.priority = kMinPriority});
    uint64_t id = 2;
    int64_t now = 1;
    for (; driver.output(1).finishes == 0 && now < 5000; ++now) {
      while (driver.scheduler().Stats().waiting < 4) {
        Request urgent = MakeRequest(id++, random.Between(5, 60), random.Between(1, 8));
        urgent.arrival = At(now);
        Add(driver, urgent,
            {.priority = random.Between(1, kMaxPriority),
             .tenant = random.Between(0, tenants - 1)});
      }
      driver.Step(At(now));
    }
    EXPECT_GT(now, 100) << "it was not under pressure";
    EXPECT_LE(now, 20 * kAgeing + 400) << tenants << " tenants";
    EXPECT_LE(driver.output(1).preemptions, options.scheduler.queue.max_preemptions);
    EXPECT_EQ(driver.output(1).tokens, Alone(MakeRequest(1, 50, 30)));
    driver.RunUntilIdle(100'000, At(now));
  }
}

TEST(SchedulerOrder, FirstComeFirstServedPassesNobody) {
  StepDriverOptions options = Options(4);
  options.scheduler.queue.fcfs = true;
  StepDriver driver(options);
  Add(driver, MakeRequest(1, 120, 8));
  Add(driver, MakeRequest(2, 190, 8));
  Add(driver, MakeRequest(3, 10, 8), {.priority = 10, .tenant = 3});
  EXPECT_EQ(driver.Step(), "120 tokens\n1.0: 0 + 120, blocks 0 1, draws\nadmitted 1.0\n");
  EXPECT_EQ(driver.Step(), "1 tokens\n1.0: 120 + 1, blocks 0 1, draws\n");
  driver.RunUntilIdle();
}

// Random traffic of all kinds: everything ends as it does alone, within the bounds.
TEST(SchedulerOrder, RandomPrioritiesAndTenantsKeepTheBounds) {
  int64_t for_priority = 0, for_blocks = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    TestRandom random(seed);
    StepDriverOptions options = Options(random.Between(3, 9), random.Between(1, 5));
    options.scheduler.step_tokens = random.Chance(50) ? 128 : random.Between(5, 40);
    options.scheduler.max_waiting = 200;
    QueuePolicy& queue = options.scheduler.queue;
    queue.ageing_ns = random.Between(0, 40);
    queue.max_bypasses = random.Between(0, 4);
    queue.max_preemptions = random.Between(0, 4);
    StepDriver driver(options);
    std::vector<Request> requests;
    int64_t now = 1;
    for (uint64_t id = 1; id <= 25; ++id) {
      Request request = MakeRequest(id, random.Between(1, 150), random.Between(1, 90));
      request.priority = random.Chance(50) ? 0 : random.Between(kMinPriority, kMaxPriority);
      request.tenant = random.Between(0, 3);
      request.arrival = At(now);
      if (driver.scheduler().Add(request).ok()) requests.push_back(request);
      for (int i = random.Between(0, 12); i > 0; --i) driver.Step(At(now += random.Between(0, 3)));
      if (random.Chance(20)) {
        const auto paused = RequestId{static_cast<uint64_t>(random.Between(1, 25))};
        driver.scheduler().SetPaused(paused, true);
        driver.Step(At(++now));
        driver.scheduler().SetPaused(paused, false);
      }
    }
    driver.RunUntilIdle(20'000, At(now));
    const SchedulerStats stats = driver.scheduler().Stats();
    for_priority += stats.preemptions_for_priority;
    for_blocks += stats.preemptions_for_blocks;
    for (const Request& request : requests) {
      const Output& output = driver.output(static_cast<uint64_t>(request.id));
      ASSERT_EQ(output.finishes, 1) << "seed " << seed;
      if (stats.preemptions_of_paused == 0) {
        ASSERT_LE(output.preemptions, queue.max_preemptions) << "seed " << seed;
      }
      Request same = request;
      const auto room = static_cast<int32_t>(options.num_blocks * kBlockTokens -
                                             static_cast<int32_t>(request.prompt.size()));
      same.stop.max_tokens = std::min(same.stop.max_tokens, room);
      ASSERT_EQ(output.tokens, Alone(same)) << "seed " << seed;
    }
  }
  EXPECT_GT(for_priority, 50);
  EXPECT_GT(for_blocks, 20);
}

}  // namespace
}  // namespace quire
