// The result of `quire bench` as one JSON object: cases, what their phases read and multiplied, and
// the machine beside them. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/loader/model_loader.h"
#include "runtime/probe/host_probe.h"
#include "server/cli/bench_engine.h"
#include "server/cli/bench_shared_prefix.h"

namespace quire {

// The runs of one case, fastest last.
struct BenchCase {
  std::string kind;  // "prefill", "decode"
  int32_t batch, prompt, gen;
  std::vector<BenchTiming> runs;

  const BenchTiming& Median() const { return runs[runs.size() / 2]; }
};

// The result but for what the command adds: speeds, limits, the machine.
nlohmann::ordered_json BenchResultJson(const std::vector<BenchCase>& cases,
                                       const LoadedModel& model, const ProbeResult& probe);
nlohmann::ordered_json BenchCaseJson(const BenchCase& c, const LoadedModel& model,
                                     double dram_gbps);
nlohmann::ordered_json SharedPrefixJson(const SharedPrefixCase& shape,
                                        const SharedPrefixResult& result);

}  // namespace quire
