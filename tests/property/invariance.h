// The engine's step loop with a tiny seeded model, and the same mixed requests run through it in
// many shapes: a request's tokens and logprobs are the same bits in all of them. One thread drives;
// a world owns its model, pools and runners.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/model/cpu_model_runner.h"
#include "scheduler/scheduler.h"
#include "tests/testing/tiny_model.h"

namespace quire {

// How to run. No field may change a bit of what a request receives. A new freedom of the engine is
// one more field here, applied in InvarianceWorld, and one more loop in invariance_test.cc.
struct RunShape {
  int32_t batch = 7;         // most sequences of a step
  int32_t step_tokens = 64;  // most tokens of a step: the size of prefill chunks
  int32_t threads = 1;
  int32_t num_blocks = 0;    // 0 = all that the runner has
  uint64_t block_order = 0;  // seed of a shuffle of the free blocks; 0 = as they come
  int32_t preempt_at = -1;   // before this step half of the running sequences lose their blocks
  bool prefix_cache = true;
  bool warm = false;  // the same prompts ran before, so the prefix cache knows them

  std::string DebugString() const;
};

// What a client sees of a token, logprobs as bits.
struct SeenToken {
  int32_t token = 0;
  uint32_t logprob_bits = 0;
  int32_t rank = 0;
  std::vector<std::pair<int32_t, uint32_t>> top;
  friend bool operator==(const SeenToken&, const SeenToken&) = default;
};
using SeenOutputs = std::map<SequenceId, std::vector<SeenToken>>;

struct RunResult {
  SeenOutputs outputs;
  int32_t steps = 0;
  int64_t preemptions = 0;
  int64_t cached_tokens = 0;  // of prompts, found in the prefix cache
};

// Of all sequences, tokens and logprob bits.
uint64_t Digest(const SeenOutputs& outputs);
// Where two runs part, for a message; "" if nowhere.
std::string FirstDifference(const SeenOutputs& expected, const SeenOutputs& actual);

// Greedy and seeded requests with every kind of cut, prompts of 1 to 300 tokens, stops and bans.
std::vector<Request> MixedRequests(int32_t count, int32_t vocab_size);

struct InvarianceModel {
  const char* name;
  TinyModelOptions model;
  KvDType kv_dtype = KvDType::kBF16;
  friend void PrintTo(const InvarianceModel& model, std::ostream* out) { *out << model.name; }
};

class InvarianceWorld {
 public:
  explicit InvarianceWorld(const InvarianceModel& model);

  // Between the runner and the rest of the loop; for tests that must see a broken promise.
  using Wrap = std::function<ModelRunner*(ModelRunner*)>;
  // Hits of the prefix cache and preemptions are counted too.
  RunResult Run(const std::vector<Request>& requests, const RunShape& shape,
                const Wrap& wrap = nullptr);
  int32_t vocab_size() const { return model_.config.vocab_size; }

 private:
  struct Engine {
    std::unique_ptr<WorkerPool> pool;
    std::unique_ptr<CpuModelRunner> runner;
  };
  Engine& EngineFor(int32_t threads);

  TinyModel model_;
  KvDType kv_dtype_;
  std::map<int32_t, Engine> engines_;  // by threads; kept, so blocks are dirty from earlier runs
};

}  // namespace quire
