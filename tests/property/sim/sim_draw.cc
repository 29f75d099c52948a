#include <algorithm>
#include <array>

#include "runtime/base/ids.h"
#include "tests/property/sim/sim_case.h"
#include "tests/testing/mix.h"

namespace quire::sim {
namespace {

// What one seed is fond of: so that rare combinations come up often in some seeds.
struct Taste {
  std::array<int32_t, 8> weights{};  // by OpKind
  int32_t forks = 0, deadlines = 0, ends = 0, sampled = 0, shared = 0, faults = 0, edges = 0,
          longs = 0, priorities = 0, bypasses = 0, turns = 0, bursts = 0, windows = 0;  // percent
  int32_t tenants = 1, families = 1;
  int32_t unit = 1;  // of time: with a coarse one, deadlines often fall on the time of a step
  int32_t max_prompt = 100, max_output = 40;
  int32_t room = 0;  // the longest prompt that fits
};

template <size_t N>
int32_t OneOf(TestRandom& random, const std::array<int32_t, N>& values) {
  return values[static_cast<size_t>(random.Between(0, static_cast<int32_t>(N) - 1))];
}

Config DrawConfig(TestRandom& random) {
  Config config;
  config.num_blocks = random.Chance(80) ? random.Between(2, 10) : random.Between(11, 64);
  config.context_tokens = OneOf(random, std::array{130, 200, 1000, 1000, 4096});
  config.step_tokens = OneOf(random, std::array{1, 2, 5, 16, 64, 128, 512});
  config.max_running = random.Chance(80) ? random.Between(1, 6) : random.Between(7, 24);
  config.max_waiting = random.Between(2, 12);
  config.max_waiting_tokens = random.Between(100, 3000);
  config.max_queue_ns = random.Chance(40) ? random.Between(20, 1000) : 1'000'000;
  config.nan_rows = random.Chance(25);
  config.prefix_cache = random.Chance(75);
  if (random.Chance(50)) config.hash_bits = random.Between(1, 5);
  config.fcfs = random.Chance(25);
  config.ageing_ns = OneOf(random, std::array{0, 5, 20, 100, 1000});
  config.max_bypasses = OneOf(random, std::array{0, 1, 3, 16});
  config.max_preemptions = OneOf(random, std::array{0, 1, 2, 8});
  config.weight_0 = random.Between(1, 3);
  config.weight_1 = random.Between(1, 3);
  if (random.Chance(30)) config.target_itl_ns = random.Between(5, 100);
  return config;
}

Taste DrawTaste(TestRandom& random, const Config& config) {
  const auto often = [&](int32_t most) { return random.Chance(50) ? random.Between(1, most) : 0; };
  Taste taste;
  // kSubmit, kAbort, kStall, kResume, kTick, kStep, kDrain, kEvict
  taste.weights = {random.Between(5, 40),     often(12), often(12), 0, often(8), 100,
                   random.Chance(10) ? 1 : 0, often(4)};
  taste.weights[3] = taste.weights[2] * random.Between(1, 3);
  taste.forks = often(40);
  taste.deadlines = often(30);
  taste.ends = often(60);
  taste.sampled = OneOf(random, std::array{0, 50, 100});
  taste.shared = often(90);
  taste.faults = often(8);
  taste.edges = random.Between(0, 90);
  taste.longs = often(30);
  taste.priorities = often(60);
  taste.bypasses = often(20);
  taste.turns = often(50);
  taste.bursts = often(50);
  taste.windows = random.Chance(60) ? random.Between(1, 100) : 0;
  taste.tenants = random.Between(1, kTenants);
  taste.families = random.Between(1, 3);
  taste.unit = OneOf(random, std::array{1, 1, 5, 50});
  const int32_t room = std::min(config.context_tokens, config.num_blocks * kBlockTokens);
  taste.room = room - 1;
  taste.max_prompt = std::min(random.Between(1, 300), taste.room);
  taste.max_output = random.Between(1, 100);
  if (random.Chance(35)) {  // short prompts that grow: blocks run out while all decode
    taste.max_prompt = std::min(taste.max_prompt, random.Between(1, 90));
    taste.max_output = random.Between(50, 200);
    taste.longs = 0;
    taste.weights[0] += 20;
  }
  return taste;
}

// Near a block edge, or anywhere; sometimes more than fits.
int32_t DrawLength(TestRandom& random, const Taste& taste) {
  int32_t length = random.Between(1, taste.max_prompt);
  if (random.Chance(taste.edges)) {
    length = kBlockTokens * random.Between(0, (length + kBlockTokens - 1) / kBlockTokens) +
             random.Between(-2, 2);
  }
  if (random.Chance(2)) length *= 8;
  return std::max(1, length);
}

void Lengthen(TestRandom& random, const Taste& taste, int32_t least, Submit& submit) {
  const int32_t longer = submit.prompt + random.Between(least, 150);
  submit.prompt = std::max(submit.prompt, std::min(taste.room, longer));
}

Submit DrawSubmit(TestRandom& random, const Taste& taste, uint32_t id) {
  Submit submit{.id = id};
  submit.prompt = DrawLength(random, taste);
  submit.max_tokens = random.Chance(taste.longs) ? random.Between(1, 4 * taste.max_output)
                                                 : random.Between(1, taste.max_output);
  if (random.Chance(taste.shared)) {
    submit.family = random.Between(0, taste.families - 1);
    submit.shared = random.Chance(60) ? submit.prompt : DrawLength(random, taste);
    submit.shared = std::min(submit.shared, submit.prompt);
  }
  if (random.Chance(taste.forks)) submit.n = random.Between(2, 4);
  if (random.Chance(taste.priorities)) submit.priority = random.Between(-10, 10);
  submit.tenant = random.Between(0, taste.tenants - 1);
  submit.domain = random.Chance(80) ? 0 : random.Between(1, 2);
  if (random.Chance(taste.deadlines)) submit.deadline = taste.unit * random.Between(0, 150);
  if (random.Chance(taste.deadlines)) submit.time_limit = taste.unit * random.Between(0, 150);
  if (random.Chance(taste.ends)) submit.min_tokens = random.Between(0, submit.max_tokens);
  submit.sampled = random.Chance(taste.sampled);
  submit.bypass = random.Chance(taste.bypasses);
  if (random.Chance(taste.windows)) {
    submit.window = OneOf(random, std::array{2, 20, 63, 64, 65, 66, 100, 150});
    submit.sinks = OneOf(random, std::array{0, 0, 1, 4, 64, 70});
    if (random.Chance(50)) Lengthen(random, taste, 0, submit);  // so that it passes a block
  }
  if (random.Chance(taste.turns) && id > 4) {
    submit.follows = id - static_cast<uint32_t>(random.Between(1, 4));
    submit.prompt += random.Between(0, submit.prompt);
  }
  return submit;
}

// The same prompt again, or its beginning, at once; often of more than a block, so that the later
// ones can wait for the first.
void DrawBurst(TestRandom& random, const Taste& taste, uint32_t& next_id, std::vector<Op>& ops) {
  Submit again = ops.back().submit;
  if (random.Chance(80)) Lengthen(random, taste, kBlockTokens, again);
  again.shared = again.prompt;
  again.follows = 0;
  ops.back().submit = again;
  for (int32_t i = random.Between(1, 4); i > 0; --i) {
    again.id = next_id++;
    if (random.Chance(30)) again.prompt += random.Between(0, 20);
    ops.push_back(Add(again));
  }
}

OpKind DrawKind(TestRandom& random, const Taste& taste) {
  int32_t sum = 0;
  for (int32_t weight : taste.weights) sum += weight;
  int32_t dice = random.Between(0, sum - 1);
  size_t kind = 0;
  while (dice >= taste.weights[kind]) dice -= taste.weights[kind++];
  return static_cast<OpKind>(kind);
}

FinishReason DrawReason(TestRandom& random) {
  constexpr std::array kReasons = {FinishReason::kAborted, FinishReason::kCancelled,
                                   FinishReason::kSlowReader, FinishReason::kStop};
  return kReasons[static_cast<size_t>(random.Between(0, 3))];
}

Op DrawStep(TestRandom& random, const Taste& taste) {
  Op op = Step(taste.unit * random.Between(0, 3));
  if (!random.Chance(taste.faults)) return op;
  op.fault = static_cast<Fault>(random.Between(1, 4));
  op.victim = random.Between(0, 7);
  return op;
}

}  // namespace

Case DrawCase(uint64_t seed) {
  TestRandom random(seed);
  Case c{.config = DrawConfig(random), .ops = {}};
  const Taste taste = DrawTaste(random, c.config);
  const int32_t count = random.Between(40, 500);
  uint32_t next_id = 1;
  // Mostly a recent request, since the old ones have ended.
  const auto any_id = [&] {
    const auto back = static_cast<uint32_t>(random.Between(1, 8));
    return next_id > back ? next_id - back : 1;
  };
  for (int32_t i = 0; i < count; ++i) {
    switch (const OpKind kind = DrawKind(random, taste)) {
      case OpKind::kSubmit:
        c.ops.push_back(Add(DrawSubmit(random, taste, next_id++)));
        if (random.Chance(taste.bursts)) DrawBurst(random, taste, next_id, c.ops);
        break;
      case OpKind::kAbort:
        c.ops.push_back(random.Chance(30) ? AbortOutput(any_id(), random.Between(0, 3))
                                          : Abort(any_id(), DrawReason(random)));
        break;
      case OpKind::kStall:
        c.ops.push_back(Stall(any_id()));
        break;
      case OpKind::kResume:
        c.ops.push_back(Resume(any_id()));
        break;
      case OpKind::kTick:
        c.ops.push_back(Tick(taste.unit * random.Between(1, 60)));
        break;
      case OpKind::kStep:
        c.ops.push_back(DrawStep(random, taste));
        break;
      case OpKind::kEvict:
        c.ops.push_back(Evict(random.Between(1, c.config.num_blocks)));
        break;
      case OpKind::kDrain:
        c.ops.push_back({.kind = kind});
        break;
    }
  }
  return c;
}

}  // namespace quire::sim
