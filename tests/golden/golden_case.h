// Reads the golden cases of tests/golden/data and runs a model over given tokens for its logits.
// One thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/base/worker_pool.h"
#include "runtime/loader/model_loader.h"
#include "runtime/model/cpu_model_runner.h"

namespace quire {

std::string GoldenPath(const std::string& name);
nlohmann::json ReadGoldenJson(const std::string& name);
std::vector<float> ReadF32Rows(const std::string& name);
std::vector<float> ReadF16Rows(const std::string& name);
std::vector<TokenId> TokensOf(const nlohmann::json& ids);

class GoldenModel {
 public:
  // CHECK-fails if the file cannot be loaded.
  GoldenModel(const std::string& path, KvDType kv_dtype, int32_t threads);

  // Logits of every position of `tokens`, which are fed in chunks of `chunk` <= 64 through a fresh
  // sequence.
  std::vector<std::vector<float>> Logits(std::span<const TokenId> tokens, int32_t chunk);
  const LoadedModel& loaded() const { return loaded_; }

 private:
  WorkerPool pool_;
  LoadedModel loaded_;
  std::unique_ptr<CpuModelRunner> runner_;
};

}  // namespace quire
