#include "tests/property/invariance.h"

#include <algorithm>
#include <array>
#include <bit>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "runtime/sampling/sampler.h"
#include "scheduler/batch_builder.h"
#include "tests/testing/mix.h"
#include "tests/testing/requests.h"
#include "tests/testing/scheduler_peer.h"

namespace quire {
namespace {

constexpr int32_t kBlocks = 256;
constexpr int32_t kMaxRows = 512;
constexpr int32_t kMaxSeqs = 64;
constexpr int32_t kMaxSteps = 100'000;
constexpr uint64_t kWarmIds = 1'000'000;  // request ids are never reused

SchedulerOptions SchedulerOptionsFor(const RunShape& shape, int32_t context_tokens) {
  SchedulerOptions options;
  options.context_tokens = context_tokens;
  options.step_tokens = shape.step_tokens;
  options.max_running = shape.batch;
  options.max_queue_ns = INT64_MAX / 4;
  options.prefix_cache = shape.prefix_cache;
  return options;
}

// Takes all blocks of a pool of which none is in use and gives them back in another order.
void ShuffleFreeBlocks(BlockPool& pool, uint64_t seed) {
  TestRandom random(seed);
  std::vector<BlockId> blocks;
  while (pool.num_free() > 0) blocks.push_back(pool.Allocate());
  for (size_t i = blocks.size(); i > 1; --i) {
    std::swap(blocks[i - 1], blocks[random.Next() % i]);
  }
  for (const BlockId block : blocks) pool.Release(block);
}

// What the planner does when the pool is too small, at a moment of the test's choice.
void PreemptHalf(Scheduler& scheduler, int32_t parity) {
  auto& state = SchedulerTestPeer::Get(scheduler);
  std::vector<Sequence*> running, victims;
  for (Sequence* sequence : state.running.items()) {
    if (!sequence->ended()) running.push_back(sequence);
  }
  for (size_t i = 0; i < running.size(); ++i) {
    if (running.size() == 1 || static_cast<int32_t>(i % 2) == parity % 2) {
      victims.push_back(running[i]);
    }
  }
  for (Sequence* victim : victims) {
    state.running.Remove(*victim);
    victim->Preempt();
    state.waiting.Insert(*victim);
  }
}

SeenToken See(const TokenEvent& event) {
  SeenToken seen{.token = static_cast<int32_t>(event.token),
                 .logprob_bits = std::bit_cast<uint32_t>(event.logprob),
                 .rank = event.rank,
                 .top = {}};
  for (int32_t i = 0; i < event.top_count; ++i) {
    const TopLogprob& top = event.top[static_cast<size_t>(i)];
    seen.top.emplace_back(static_cast<int32_t>(top.token), std::bit_cast<uint32_t>(top.logprob));
  }
  return seen;
}

void Record(const TokenEvent& event, uint64_t first_id, RunResult& result) {
  CHECK(event.finish != FinishReason::kError);
  const SequenceId id = {RequestId{static_cast<uint64_t>(event.sequence.request) - first_id},
                         event.sequence.output_index};
  result.outputs[id].push_back(See(event));
  if (event.finish != FinishReason::kNone) result.preemptions += event.preemptions;
}

}  // namespace

std::string RunShape::DebugString() const {
  return absl::StrCat("batch ", batch, ", step tokens ", step_tokens, ", threads ", threads,
                      ", blocks ", num_blocks, ", block order ", block_order, ", preempt at ",
                      preempt_at, ", prefix cache ",
                      !prefix_cache ? "off"
                      : warm        ? "warm"
                                    : "cold");
}

uint64_t Digest(const SeenOutputs& outputs) {
  uint64_t digest = 0;
  const auto add = [&digest](uint64_t value) { digest = Mix(digest, value); };
  for (const auto& [id, tokens] : outputs) {
    add(static_cast<uint64_t>(id.request));
    add(static_cast<uint64_t>(id.output_index));
    add(tokens.size());
    for (const SeenToken& seen : tokens) {
      add(static_cast<uint64_t>(seen.token));
      add(seen.logprob_bits);
      add(static_cast<uint64_t>(seen.rank));
      for (const auto& [token, bits] : seen.top) {
        add(static_cast<uint64_t>(token));
        add(bits);
      }
    }
  }
  return digest;
}

std::string FirstDifference(const SeenOutputs& expected, const SeenOutputs& actual) {
  for (const auto& [id, tokens] : expected) {
    const auto found = actual.find(id);
    const std::string name =
        absl::StrCat("request ", static_cast<uint64_t>(id.request), " output ", id.output_index);
    if (found == actual.end()) return name + " is missing";
    const std::vector<SeenToken>& others = found->second;
    for (size_t i = 0; i < std::min(tokens.size(), others.size()); ++i) {
      if (tokens[i] == others[i]) continue;
      return absl::StrCat(name, " token ", i, ": ", tokens[i].token, " with logprob ",
                          std::bit_cast<float>(tokens[i].logprob_bits), ", then ", others[i].token,
                          " with ", std::bit_cast<float>(others[i].logprob_bits));
    }
    if (tokens.size() != others.size()) return name + " has another length";
  }
  return actual.size() == expected.size() ? "" : "a sequence too many";
}

std::vector<Request> MixedRequests(int32_t count, int32_t vocab_size) {
  // Around the edges of blocks (64) and of attention's chunks (256).
  constexpr std::array<int32_t, 10> kPrompts = {1, 2, 15, 30, 48, 60, 63, 64, 65, 20};
  std::vector<Request> requests;
  for (int32_t i = 0; i < count; ++i) {
    const auto id = static_cast<uint64_t>(i) + 1;
    Request& r = requests.emplace_back();
    r.id = RequestId{id};
    const int32_t prompt =
        i % 16 == 5 ? 250 + i % 9 : kPrompts[static_cast<size_t>(i) % kPrompts.size()];
    r.prompt = RandomTokens(i % 32 == 21 ? 6 : id, prompt, vocab_size);  // 6 and 22 share a start
    r.stop.max_tokens = 4 + i % 7;
    r.sampling = {.temperature = 0, .seed = 1000 + id, .logprobs = true, .top_logprobs = i % 4};
    if (i % 3 != 0) r.sampling.temperature = 0.7f + 0.1f * static_cast<float>(i % 5);
    if (i % 5 == 1) r.sampling.top_k = 1 + i;
    if (i % 4 == 2) r.sampling.top_p = 0.9f;
    if (i % 7 == 4) r.sampling.min_p = 0.05f;
    if (i % 6 == 3) r.num_sequences = 2;
    for (int32_t t = i % 8; i % 2 == 1 && t < vocab_size; t += 8) {
      r.stop.stop_ids.push_back(TokenId{t});  // an eighth of the vocabulary
    }
    if (i % 4 == 3) r.stop.min_tokens = 3;
    if (i % 8 == 5) r.kv = {.window_tokens = 64 + i, .sink_tokens = i % 3 * 2};  // of long ones too
  }
  return requests;
}

InvarianceWorld::InvarianceWorld(const InvarianceModel& model)
    : model_(MakeTinyModel(model.model)), kv_dtype_(model.kv_dtype) {}

InvarianceWorld::Engine& InvarianceWorld::EngineFor(int32_t threads) {
  Engine& engine = engines_[threads];
  if (engine.runner != nullptr) return engine;
  engine.pool = std::make_unique<WorkerPool>(WorkerPoolOptions{.threads = threads, .pin = false});
  auto runner = CpuModelRunner::Create(model_.config, model_.weights,
                                       {.kv_dtype = kv_dtype_,
                                        .num_blocks = kBlocks,
                                        .max_rows = kMaxRows,
                                        .max_seqs = kMaxSeqs,
                                        .pool = engine.pool.get()});
  CHECK_OK(runner.status());
  engine.runner = *std::move(runner);
  return engine;
}

RunResult InvarianceWorld::Run(const std::vector<Request>& requests, const RunShape& shape,
                               const Wrap& wrap) {
  Engine& engine = EngineFor(shape.threads);
  ModelRunner* runner = engine.runner.get();
  if (wrap) runner = wrap(runner);
  const RunnerLimits limits = runner->Limits();
  Scheduler scheduler(SchedulerOptionsFor(shape, limits.context_tokens),
                      shape.num_blocks > 0 ? shape.num_blocks : limits.num_blocks);
  BatchBuilder builder(limits);
  Sampler sampler({.vocab_size = limits.vocab_size, .pool = engine.pool.get()});
  if (shape.block_order != 0) {
    ShuffleFreeBlocks(SchedulerTestPeer::Pool(scheduler), shape.block_order);
  }
  const auto run = [&](uint64_t first_id, int32_t preempt_at, RunResult& result) {
    for (Request request : requests) {
      request.id = RequestId{static_cast<uint64_t>(request.id) + first_id};
      CHECK_OK(scheduler.Add(std::move(request)));
    }
    std::vector<Sampled> sampled(kMaxSeqs);
    std::vector<TokenEvent> events;
    for (; scheduler.HasWork(); ++result.steps) {
      CHECK_LT(result.steps, kMaxSteps) << "work is left";
      if (result.steps == preempt_at) PreemptHalf(scheduler, result.steps);
      const StepPlan& plan = scheduler.Schedule(MonotonicTime{1});
      std::span<Sampled> drawn;
      if (plan.num_tokens > 0) {
        const StepOutput output = runner->Forward(builder.Build(plan));
        drawn = std::span(sampled).first(builder.specs().size());
        sampler.Sample(output.logits, builder.specs(), drawn);
      }
      events.clear();
      scheduler.Commit(drawn, events);
      for (const TokenEvent& event : events) Record(event, first_id, result);
    }
  };
  if (shape.warm) {
    RunResult before;
    run(kWarmIds, -1, before);
  }
  const int64_t known = scheduler.Stats().prefix_hit_tokens;
  RunResult result;
  run(0, shape.preempt_at, result);
  result.cached_tokens = scheduler.Stats().prefix_hit_tokens - known;
  scheduler.CheckInvariants();
  CHECK_EQ(scheduler.Stats().blocks_used, 0);
  for (const Request& request : requests) {
    for (int32_t i = 0; i < request.num_sequences; ++i) {
      CHECK(result.outputs.contains({request.id, i}));
    }
  }
  return result;
}

}  // namespace quire
