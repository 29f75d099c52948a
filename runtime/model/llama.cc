#include "runtime/model/llama.h"

namespace quire {
namespace {

void SelfAttention(const Step& step, int32_t worker, int32_t layer, PhaseTimer& timer) {
  const LayerWeights& weights = step.weights.layers[layer];
  const ActRows h = NormRowsWithResidual(step, worker, weights.attention_norm);
  timer.Lap(Phase::kNorm);
  ProjectQkv(step, worker, weights, h);
  timer.Lap(Phase::kQkv);
  RotateAndAppend(step, worker, layer);
  timer.Lap(Phase::kRope);
  Attend(step, worker, layer);
  timer.Lap(Phase::kAttention);
  const ActRows heads = AttentionRows(step, worker);
  timer.Lap(Phase::kNorm);
  AddProduct(step, worker, weights.wo, heads);
  timer.Lap(Phase::kOutput);
}

void FeedForward(const Step& step, int32_t worker, int32_t layer, PhaseTimer& timer) {
  const LayerWeights& weights = step.weights.layers[layer];
  const ActRows h = NormRows(step, worker, weights.ffn_norm);
  timer.Lap(Phase::kNorm);
  GateAndUp(step, worker, weights, h);
  timer.Lap(Phase::kGateUp);
  AddProduct(step, worker, weights.down, FfnRows(step));
  timer.Lap(Phase::kDown);
}

}  // namespace

void LlamaStep(const Step& step, int32_t worker, StepProfile* profile) {
  PhaseTimer timer(profile);
  CopyAndEmbed(step, worker);
  timer.Lap(Phase::kEmbed);
  for (int32_t layer = 0; layer < step.config.num_layers; ++layer) {
    SelfAttention(step, worker, layer, timer);
    FeedForward(step, worker, layer, timer);
  }
  Logits(step, worker);
  timer.Lap(Phase::kLogits);
}

}  // namespace quire
