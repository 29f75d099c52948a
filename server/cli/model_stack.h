// A model file brought to life: worker pool, weights, tokenizer, template, KV pool and runner,
// sized by the resource plan. Loading: one thread. Afterwards the runner belongs to the engine
// thread, the rest is immutable.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/worker_pool.h"
#include "runtime/loader/model_loader.h"
#include "runtime/model/cpu_model_runner.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/prompt_encoder.h"
#include "runtime/text/tokenizer.h"
#include "server/config/resource_plan.h"
#include "server/config/server_config.h"

namespace quire {

struct ModelStack {
  std::string path;  // of the model file
  std::unique_ptr<WorkerPool> pool;
  LoadedModel model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat;  // null: the model has none
  std::unique_ptr<PromptEncoder> encoder;
  ResourcePlan plan;
  std::unique_ptr<CpuModelRunner> runner;
  std::string isa, kv_dtype;
  int64_t limit_bytes = 0;    // of the cgroup or RAM
  double slowest_step_s = 0;  // of the warm-up

  // Loads, plans, allocates and touches memory, generates kernels, and runs one prefill chunk and
  // one decode step. FAILED_PRECONDITION (exit 78) for whatever is wrong with the file or the
  // configuration.
  static absl::StatusOr<std::unique_ptr<ModelStack>> Load(
      const ServerConfig& config,
      std::function<void(size_t done_bytes, size_t total_bytes)> progress);
};

}  // namespace quire
