// A case of the simulation: a configuration and a list of operations, plain data that can be drawn
// from a seed, shrunk by deleting operations, and printed as the code of a test. What an operation
// refers to is named by the request's id, so that deleting one leaves the others their meaning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"
#include "scheduler/token_event.h"

namespace quire::sim {

struct Config {
  int32_t num_blocks = 8;
  int32_t context_tokens = 1000;
  int32_t step_tokens = 32;
  int32_t max_running = 4;
  int32_t max_waiting = 8;  // sequences
  int32_t max_waiting_tokens = 4000;
  int32_t max_queue_ns = 1'000'000;
  bool nan_rows = false;  // some rows of the model yield NaN, by position and token
  bool prefix_cache = true;
  int32_t hash_bits = 64;  // of the prefix index
  bool fcfs = false;
  int32_t ageing_ns = 100;
  int32_t max_bypasses = 16, max_preemptions = 8;
  int32_t weight_0 = 1, weight_1 = 1;  // of tenants
  int32_t target_itl_ns = 0;           // a step costs a nanosecond a row and a few more

  SchedulerOptions Options() const;
};

inline constexpr int32_t kTenants = 3;  // of the third the weight is 1

// A request. Times are relative to its submission, -1 = none.
struct Submit {
  uint32_t id = 0;  // unique in the case
  int32_t prompt = 1, max_tokens = 1;
  int32_t shared = 0, family = 0;  // its leading `shared` tokens are those of the family
  int32_t n = 1;
  int32_t priority = 0, tenant = 0, domain = 0;
  int32_t deadline = -1, time_limit = -1;
  int32_t min_tokens = -1;  // >= 0: the model's end token ends it, not before that many tokens
  bool sampled = false;     // else greedy
  bool bypass = false;      // of the prefix cache
  int32_t window = 0, sinks = 0;  // of its KV policy
  uint32_t follows = 0;  // its prompt begins as all of that request's tokens do: a next turn
};

// What goes wrong inside a step, between Schedule and Commit, to the sequence at place `victim` of
// the plan, modulo its length.
enum class Fault : uint8_t { kNone, kAbort, kStall, kNonFinite, kNoToken };

enum class OpKind : uint8_t { kSubmit, kAbort, kStall, kResume, kTick, kStep, kDrain, kEvict };

struct Op {
  OpKind kind = OpKind::kStep;
  Submit submit{};
  uint32_t id = 0;      // of the request that is aborted, stalled or resumed
  int32_t output = -1;  // of it to abort, once it has a token; -1: all
  FinishReason reason = FinishReason::kAborted;
  int32_t nanos = 0;   // how far the clock moves before the step, or by the tick
  int32_t blocks = 0;  // that are to be free, at the cost of cached ones
  Fault fault = Fault::kNone;
  int32_t victim = 0;
};

struct Case {
  Config config{};
  std::vector<Op> ops{};
};

// The vocabulary of cases in code.
inline Op Add(const Submit& submit) { return {.kind = OpKind::kSubmit, .submit = submit}; }
inline Op Abort(uint32_t id, FinishReason reason = FinishReason::kAborted) {
  return {.kind = OpKind::kAbort, .id = id, .reason = reason};
}
inline Op AbortOutput(uint32_t id, int32_t output) {
  return {.kind = OpKind::kAbort, .id = id, .output = output, .reason = FinishReason::kStop};
}
inline Op Stall(uint32_t id) { return {.kind = OpKind::kStall, .id = id}; }
inline Op Resume(uint32_t id) { return {.kind = OpKind::kResume, .id = id}; }
inline Op Tick(int32_t nanos) { return {.kind = OpKind::kTick, .nanos = nanos}; }
inline Op Evict(int32_t blocks) { return {.kind = OpKind::kEvict, .blocks = blocks}; }
inline Op Drain() { return {.kind = OpKind::kDrain}; }
inline Op Step(int32_t nanos = 0, Fault fault = Fault::kNone, int32_t victim = 0) {
  return {.kind = OpKind::kStep, .nanos = nanos, .fault = fault, .victim = victim};
}

// Swarm: the seed draws the configuration, the weights of the operations, then the operations.
Case DrawCase(uint64_t seed);

// The case as a test that can be pasted.
std::string ToCode(const Case& c, const std::string& test_name);

}  // namespace quire::sim
