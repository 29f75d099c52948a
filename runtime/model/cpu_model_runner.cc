#include "runtime/model/cpu_model_runner.h"

#include <chrono>

#include "absl/log/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/kernels/isa_limit.h"
#include "runtime/model/llama.h"
#include "runtime/model/transformer.h"

namespace quire {
namespace {

CpuModelOptions WithDefaults(const ModelConfig& config, CpuModelOptions options) {
  if (options.context_tokens == 0) options.context_tokens = config.context_tokens;
  return options;
}

RopeOptions RopeOptionsOf(const ModelConfig& config, const ModelWeights& weights,
                          int32_t context_tokens) {
  return {.pairs = config.rope_kind == RopeKind::kInterleaved ? RopePairs::kInterleaved
                                                              : RopePairs::kHalfSplit,
          .dims = config.rope_dims,
          .context_tokens = context_tokens,
          .theta = config.rope_theta,
          .scale = config.rope_scale,
          .factors = weights.rope_factors};
}

KvLayout LayoutOf(const ModelConfig& config, KvDType dtype) {
  return KvLayout::Make(dtype, config.num_kv_heads, config.head_dim);
}

}  // namespace

CpuModelRunner::CpuModelRunner(const ModelConfig& config, const ModelWeights& weights,
                               const CpuModelOptions& options)
    : config_(config),
      weights_(weights),
      options_(options),
      rope_(RopeOptionsOf(config, weights, options.context_tokens)) {}

absl::StatusOr<std::unique_ptr<CpuModelRunner>> CpuModelRunner::Create(
    const ModelConfig& config, const ModelWeights& weights, const CpuModelOptions& given) {
  CHECK(given.pool != nullptr);
  CHECK_GE(given.num_blocks, 1);
  LimitHighway(ActiveIsa());
  const CpuModelOptions options = WithDefaults(config, given);
  std::unique_ptr<CpuModelRunner> runner(new CpuModelRunner(config, weights, options));
  ASSIGN_OR_RETURN(runner->kv_,
                   KvPool::Create(LayoutOf(config, options.kv_dtype), config.num_layers,
                                  options.num_blocks, options.pool));
  ASSIGN_OR_RETURN(runner->activations_,
                   Activations::Create(config, {.max_rows = options.max_rows,
                                                .max_logits_rows = options.max_seqs,
                                                .workers = options.pool->size()}));
  AttentionOptions attention;
  attention.shape = {config.num_heads, config.num_kv_heads, config.head_dim,
                     config.attention_scale};
  attention.kv_dtype = options.kv_dtype;
  attention.num_layers = config.num_layers;
  attention.workers = options.pool->size();
  attention.max_rows = options.max_rows;
  attention.max_seqs = options.max_seqs;
  attention.context_tokens = options.context_tokens;
  attention.cascade = options.cascade;
  ASSIGN_OR_RETURN(runner->attention_, AttentionKernel::Create(attention));
  return runner;
}

RunnerLimits CpuModelRunner::Limits() const {
  return {.num_blocks = options_.num_blocks,
          .vocab_size = config_.vocab_size,
          .context_tokens = options_.context_tokens,
          .max_rows = options_.max_rows,
          .max_seqs = options_.max_seqs,
          .max_logits_rows = options_.max_seqs};
}

size_t CpuModelRunner::KvBlockBytes(const ModelConfig& config, KvDType dtype) {
  return LayoutOf(config, dtype).block_bytes() * static_cast<size_t>(config.num_layers);
}

size_t CpuModelRunner::scratch_bytes() const {
  return activations_.arena.size() + static_cast<size_t>(attention_->scratch_bytes());
}

StepOutput CpuModelRunner::Forward(const StepBatch& batch) {
  DCHECK_LE(static_cast<int32_t>(batch.tokens.size()), options_.max_rows);
  const auto begin = std::chrono::steady_clock::now();
  const int64_t begin_ticks = static_cast<int64_t>(__builtin_ia32_rdtsc());
  attention_->Plan(batch);
  const Step step{config_, weights_, rope_, kv_, *attention_, *options_.pool, activations_, &batch};
  options_.pool->Run(
      [&](int32_t worker) { LlamaStep(step, worker, worker == 0 ? profile_ : nullptr); });
  if (profile_ != nullptr) {
    profile_->step_ticks += static_cast<int64_t>(__builtin_ia32_rdtsc()) - begin_ticks;
    profile_->step_nanos +=
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    CountStep(batch);
  }
  const size_t groups = activations_.group_max.size() / static_cast<size_t>(options_.max_seqs);
  const size_t logits_rows = static_cast<size_t>(batch.logits_rows);
  return {.logits = {.values = activations_.logits.first(logits_rows * config_.vocab_size),
                     .group_max = activations_.group_max.first(logits_rows * groups)}};
}

void CpuModelRunner::CountStep(const StepBatch& batch) {
  ++profile_->steps;
  profile_->rows += static_cast<int64_t>(batch.tokens.size());
  profile_->logits_rows += batch.logits_rows;
  profile_->attention_macs += attention_->planned_macs();
  profile_->kv_bytes += attention_->planned_kv_bytes();
}

}  // namespace quire
