// A transformer on the CPU: executes one step over the paged KV cache. Engine thread only, not
// re-entrant; the work runs on the given pool. Owns KV pool, activations and kernels; config,
// weights and pool outlive it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/base/worker_pool.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/rope.h"
#include "runtime/kv_cache/kv_pool.h"
#include "runtime/model/activations.h"
#include "runtime/model/model_config.h"
#include "runtime/model/step_profile.h"
#include "runtime/model/weights.h"
#include "runtime/model_runner.h"

namespace quire {

struct CpuModelOptions {
  KvDType kv_dtype = KvDType::kBF16;
  int32_t num_blocks = 0;      // of the KV pool, >= 1
  int32_t max_rows = 128;      // tokens of a step
  int32_t max_seqs = 64;       // sequences of a step, each with at most one logits row
  int32_t context_tokens = 0;  // longest sequence; 0 = the model's
  bool cascade = true;         // blocks that sequences share are read once: same bits either way
  WorkerPool* pool = nullptr;  // required
};

class CpuModelRunner final : public ModelRunner {
 public:
  // Reserves and touches all memory and generates all kernels. RESOURCE_EXHAUSTED if memory is
  // refused, INVALID_ARGUMENT for a shape that the kernels cannot serve.
  static absl::StatusOr<std::unique_ptr<CpuModelRunner>> Create(const ModelConfig& config,
                                                                const ModelWeights& weights,
                                                                const CpuModelOptions& options);

  RunnerLimits Limits() const override;
  StepOutput Forward(const StepBatch& batch) override;

  // KV bytes that one block takes, all layers.
  static size_t KvBlockBytes(const ModelConfig& config, KvDType dtype);
  size_t kv_bytes() const { return kv_.bytes(); }
  size_t scratch_bytes() const;  // activations and attention scratch

  // Phase times of the following steps are added to `profile`; null stops it.
  void SetProfile(StepProfile* profile) { profile_ = profile; }

 private:
  CpuModelRunner(const ModelConfig& config, const ModelWeights& weights,
                 const CpuModelOptions& options);
  void CountStep(const StepBatch& batch);

  const ModelConfig& config_;
  const ModelWeights& weights_;
  const CpuModelOptions options_;
  const RopeTable rope_;
  KvPool kv_;
  Activations activations_;
  std::unique_ptr<AttentionKernel> attention_;
  StepProfile* profile_ = nullptr;
};

}  // namespace quire
