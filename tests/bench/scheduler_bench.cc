// Microseconds of Schedule and Commit per step, by the shape of the load: what the scheduler costs
// beside the step that it plans.
#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

#include "absl/log/check.h"
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
  SchedulerOptions options{.context_tokens = 8192, .step_tokens = 128, .max_running = load.places};
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

}  // namespace
}  // namespace quire
