// The flags of `quire bench`, and the runs they ask for. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model/cpu_model_runner.h"
#include "server/cli/bench_baseline.h"
#include "server/cli/bench_engine.h"
#include "server/cli/bench_itl.h"
#include "server/cli/bench_shared_prefix.h"

namespace CLI {
class App;
}

namespace quire {

struct BenchFlags {
  std::string model;
  int32_t threads = 0;
  int32_t prompt_tokens = 128, output_tokens = 128, prefill_tokens = 512;
  std::vector<int32_t> batches = {1, 8, 32};
  int32_t step_tokens = 128;
  int32_t repetitions = 3;
  std::string kv_dtype = "int8";
  int32_t shared_prefix = 0;
  bool json = false;
  std::string fit_cost;
  BaselineOptions baseline;
  ItlBenchOptions itl;

  void AddTo(CLI::App& app);

  KvDType DType() const;
  BenchEngineOptions Engine() const;  // for the cases of all batches and the shared prefix
  ItlBenchOptions Itl() const;
  SharedPrefixCase SharedPrefix() const;
  int64_t LongestSequence() const;  // tokens of a sequence in any run
};

}  // namespace quire
