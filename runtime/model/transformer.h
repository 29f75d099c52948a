// The phases of a transformer step. Every kernel worker calls the same phases in the same order
// inside one WorkerPool::Run; a phase splits its work over the workers and ends in a barrier,
// unless its comment says that every worker does all of it. An output element is computed by one
// worker and its bits depend on its row alone. Views only: the runner owns what they point to.
#pragma once

#include "runtime/base/worker_pool.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/rope.h"
#include "runtime/kv_cache/kv_pool.h"
#include "runtime/model/activations.h"
#include "runtime/model/model_config.h"
#include "runtime/model/weights.h"
#include "runtime/step_batch.h"

namespace quire {

// What a step works on; the same for all its workers.
struct Step {
  const ModelConfig& config;
  const ModelWeights& weights;
  const RopeTable& rope;
  const KvPool& kv;
  AttentionKernel& attention;
  WorkerPool& pool;
  Activations& act;
  const StepBatch* batch = nullptr;

  int32_t rows() const { return static_cast<int32_t>(batch->tokens.size()); }
  int32_t q_cols() const { return config.num_heads * config.head_dim; }
  int32_t kv_cols() const { return config.num_kv_heads * config.head_dim; }
  int32_t qkv_cols() const { return q_cols() + 2 * kv_cols(); }
};

// Executes the step's block copies, then x = embedding rows, and the rope factors of the rows'
// positions.
void CopyAndEmbed(const Step& step, int32_t worker);

// RMSNorm of x, prepared as input of the next products. Few rows: every worker does all of them.
ActRows NormRows(const Step& step, int32_t worker, std::span<const float> weight);

// The same as input of ProjectQkv: behind the rows come as many residual rows, what int8 left over
// of each. The values of attention are computed from both: of all products of a layer they gain
// most per multiplication. On the golden prompts 1 - cosine to the float model falls from 9e-4 to
// 3e-4 (f32 KV), from 5e-4 to 2e-4 (bf16 KV), as far as with residuals for queries and keys too,
// for 3% more work and no more weight traffic.
ActRows NormRowsWithResidual(const Step& step, int32_t worker, std::span<const float> weight);

// qkv = [Wq; Wk; Wv] h; v of the residual rows behind the rows they complete, RotateAndAppend adds
// them.
void ProjectQkv(const Step& step, int32_t worker, const LayerWeights& layer, const ActRows& h);

// Rotates q and k in place, and appends k and v to the KV pool.
void RotateAndAppend(const Step& step, int32_t worker, int32_t layer);

// attention = softmax(q K / sqrt(d)) V over every sequence's visible tokens
void Attend(const Step& step, int32_t worker, int32_t layer);

// The attention results, prepared as input of the output projection. Few rows: every worker does
// all of them.
ActRows AttentionRows(const Step& step, int32_t worker);

// x += W h
void AddProduct(const Step& step, int32_t worker, const PackedMatrix& w, const ActRows& h);

// ffn = silu(Wgate h) * (Wup h), quantised on the way
void GateAndUp(const Step& step, int32_t worker, const LayerWeights& layer, const ActRows& h);
ActRows FfnRows(const Step& step);

// logits = Whead norm(x) of the rows that were asked for, and the maximum of each group of logits.
void Logits(const Step& step, int32_t worker);

}  // namespace quire
