#include "runtime/model/transformer.h"

#include <algorithm>
#include <array>

#include "runtime/kernels/kv_append.h"
#include "runtime/kernels/linear.h"
#include "runtime/kernels/logit_scan.h"
#include "runtime/kernels/pack.h"
#include "runtime/kernels/rms_norm.h"
#include "runtime/kernels/swiglu.h"
#include "runtime/kv_cache/block_copy.h"

namespace quire {
namespace {

bool IsQuantized(const PackedMatrix& w) { return UsesQuantizedActivations(w.type); }

// The first `rows` x `cols` of a buffer made for at least as many.
ActRows ViewOf(const ActBuffer& buffer, int32_t rows, int32_t cols) {
  ActRows view = buffer.rows;
  view.rows = rows;
  view.cols = cols;
  return view;
}

// Rows that this worker prepares, and where: all of them into its own buffer when they are few, else its share of
// the common one. The caller ends the phase with Share().
struct Preparation {
  ActRows rows;
  IndexRange range;
  bool is_private;
};
Preparation Prepare(const Step& step, int32_t worker, int32_t rows, int32_t cols) {
  if (rows <= kPrivateRows) {
    return {ViewOf(step.act.workers[worker].hidden, rows, cols), {0, rows}, true};
  }
  return {ViewOf(step.act.hidden, rows, cols), SplitEvenly(rows, worker, step.pool.size()), false};
}
ActRows Share(const Step& step, const Preparation& p) {
  if (!p.is_private) step.pool.Barrier();
  return p.rows;
}

float* MutableRow(const ActRows& rows, int32_t row) {
  return const_cast<float*>(rows.f32) + row * rows.f32_stride;  // buffers are ours; kernels see them const
}

// The rows of `p` are in place as f32; adds the int8 form if the next products read it.
void QuantizeIfNeeded(const Preparation& p, bool needed) {
  if (needed) QuantizeRows(p.rows, p.range.begin, p.range.end);
}

int32_t RoundDown(int32_t value, int32_t multiple) { return value / multiple * multiple; }

// Panels of a tile so that rows x columns stay in L2: at least `unit`, a multiple of it.
int32_t TilePanels(int32_t rows, int32_t unit) {
  return std::max(unit, RoundDown(kTileFloats / rows / kPanelRows, unit));
}

}  // namespace

void CopyAndEmbed(const Step& step, int32_t worker) {
  const StepBatch& batch = *step.batch;
  if (!batch.copies.empty()) {
    const IndexRange layers = SplitEvenly(step.config.num_layers, worker, step.pool.size());
    for (int32_t i = layers.begin; i < layers.end; ++i) CopyBlocks(step.kv.Layer(i), batch.copies);
  }
  const IndexRange rows = SplitEvenly(step.rows(), worker, step.pool.size());
  const int32_t hidden = step.config.hidden_size, factors = 2 * step.config.rope_dims;
  for (int32_t row = rows.begin; row < rows.end; ++row) {
    UnpackRow(step.weights.embedding, static_cast<int32_t>(batch.tokens[row]),
              step.act.x.data() + int64_t{row} * hidden);
    step.rope.FillRow(batch.positions[row], step.act.rope.data() + int64_t{row} * factors);
  }
  step.pool.Barrier();
}

ActRows NormRows(const Step& step, int32_t worker, std::span<const float> weight) {
  const int32_t hidden = step.config.hidden_size;
  const Preparation p = Prepare(step, worker, step.rows(), hidden);
  for (int32_t row = p.range.begin; row < p.range.end; ++row) {
    RmsNorm(step.act.x.data() + int64_t{row} * hidden, weight.data(), step.config.rms_eps, hidden,
            MutableRow(p.rows, row));
  }
  QuantizeIfNeeded(p, hidden % kQuantBlock == 0);
  return Share(step, p);
}

void ProjectQkv(const Step& step, int32_t worker, const LayerWeights& layer, const ActRows& h) {
  const std::array<const PackedMatrix*, 3> parts = {&layer.wq, &layer.wk, &layer.wv};
  const int32_t panels = layer.wq.panels() + layer.wk.panels() + layer.wv.panels();
  const IndexRange mine = SplitEvenly(panels, worker, step.pool.size());
  float* out = step.act.qkv.data();
  int32_t first = 0;  // panel of [Wq; Wk; Wv] where the part starts
  for (const PackedMatrix* w : parts) {
    const PanelRange range = {std::max(mine.begin - first, 0), std::min(mine.end - first, w->panels())};
    if (range.begin < range.end) {
      Linear(*w, range, h, {out, step.qkv_cols()}, step.act.workers[worker].linear);
    }
    first += w->panels();
    out += w->rows;
  }
  step.pool.Barrier();
}

void RotateAndAppend(const Step& step, int32_t worker, int32_t layer) {
  const ModelConfig& c = step.config;
  const int32_t group = c.num_heads / c.num_kv_heads, rows = step.rows();
  float* q = step.act.qkv.data();
  float* k = q + step.q_cols();
  float* v = k + step.kv_cols();
  const int64_t stride = step.qkv_cols(), factors = int64_t{2} * c.rope_dims;
  // Items are (KV head, row), heads outside: a KV head's rows are appended together.
  const IndexRange mine = SplitEvenly(rows * c.num_kv_heads, worker, step.pool.size());
  for (int32_t item = mine.begin; item < mine.end;) {
    const int32_t head = item / rows, begin = item % rows;
    const int32_t end = std::min(rows, begin + mine.end - item);
    for (int32_t row = begin; row < end; ++row) {
      const float* f = step.act.rope.data() + row * factors;
      ApplyRope(step.rope, f, {q + row * stride + head * group * c.head_dim, group, c.head_dim});
      ApplyRope(step.rope, f, {k + row * stride + head * c.head_dim, 1, c.head_dim});
    }
    AppendKv(step.kv.Layer(layer), {step.batch->slots, k, v, stride}, {begin, end, head, head + 1});
    item += end - begin;
  }
  step.pool.Barrier();
}

void Attend(const Step& step, int32_t worker, int32_t layer) {
  const AttentionIo io = {step.act.qkv.data(), step.qkv_cols(), step.act.attention.data(), step.q_cols()};
  step.attention.Run(worker, layer, step.kv.Layer(layer), io);
  step.pool.Barrier();
}

ActRows AttentionRows(const Step& step, int32_t worker) {
  Preparation p = Prepare(step, worker, step.rows(), step.q_cols());
  p.rows.f32 = step.act.attention.data();
  p.rows.f32_stride = step.q_cols();
  QuantizeIfNeeded(p, step.q_cols() % kQuantBlock == 0);
  return Share(step, p);
}

void AddProduct(const Step& step, int32_t worker, const PackedMatrix& w, const ActRows& h) {
  const IndexRange mine = SplitEvenly(w.panels(), worker, step.pool.size());
  const int32_t width = TilePanels(h.rows, 1);
  WorkerScratch& scratch = step.act.workers[worker];
  for (int32_t begin = mine.begin; begin < mine.end; begin += width) {
    const int32_t end = std::min(begin + width, mine.end);
    const int32_t col = begin * kPanelRows, cols = std::min(end * kPanelRows, w.rows) - col;
    Linear(w, {begin, end}, h, {scratch.tile.data() - col, cols}, scratch.linear);
    for (int32_t row = 0; row < h.rows; ++row) {
      AddTo(step.act.x.data() + int64_t{row} * w.rows + col, scratch.tile.data() + int64_t{row} * cols, cols);
    }
  }
  step.pool.Barrier();
}

void GateAndUp(const Step& step, int32_t worker, const LayerWeights& layer, const ActRows& h) {
  constexpr int32_t kUnit = kQuantBlock / kPanelRows;  // panels of one block of the quantised result
  const int32_t panels = layer.gate.panels(), units = (panels + kUnit - 1) / kUnit;
  const IndexRange mine = SplitEvenly(units, worker, step.pool.size());
  const int32_t last = std::min(mine.end * kUnit, panels), width = TilePanels(h.rows, kUnit);
  WorkerScratch& scratch = step.act.workers[worker];
  const ActRows out = FfnRows(step);
  for (int32_t begin = mine.begin * kUnit; begin < last; begin += width) {
    const int32_t end = std::min(begin + width, last);
    const int32_t col = begin * kPanelRows, cols = std::min(end * kPanelRows, layer.gate.rows) - col;
    float* gate = scratch.tile.data();
    float* up = gate + int64_t{h.rows} * cols;
    Linear(layer.gate, {begin, end}, h, {gate - col, cols}, scratch.linear);
    Linear(layer.up, {begin, end}, h, {up - col, cols}, scratch.linear);
    for (int32_t row = 0; row < h.rows; ++row) {
      float* hidden = MutableRow(out, row) + col;
      SwiGlu(gate + int64_t{row} * cols, up + int64_t{row} * cols, cols, hidden);
      if (IsQuantized(layer.down)) QuantizeColumns(hidden, out, row, col, cols);
    }
  }
  step.pool.Barrier();
}

ActRows FfnRows(const Step& step) { return ViewOf(step.act.ffn, step.rows(), step.config.ffn_size); }

void Logits(const Step& step, int32_t worker) {
  const StepBatch& batch = *step.batch;
  if (batch.logits_rows == 0) return;
  const int32_t hidden = step.config.hidden_size, vocab = step.config.vocab_size;
  const Preparation p = Prepare(step, worker, batch.logits_rows, hidden);
  for (const SeqSpan& seq : batch.seqs) {
    for (int32_t i = 0; i < seq.logits_count; ++i) {
      const int32_t out = seq.logits_begin + i;
      if (out < p.range.begin || out >= p.range.end) continue;
      const int32_t row = seq.row_begin + seq.row_count - seq.logits_count + i;
      RmsNorm(step.act.x.data() + int64_t{row} * hidden, step.weights.output_norm.data(), step.config.rms_eps,
              hidden, MutableRow(p.rows, out));
    }
  }
  QuantizeIfNeeded(p, hidden % kQuantBlock == 0);
  const ActRows h = Share(step, p);

  static_assert(kLogitGroup == kScanGroup);
  constexpr int32_t kGroupPanels = kLogitGroup / kPanelRows;
  const PackedMatrix& head = step.weights.lm_head;
  const int32_t groups = (head.panels() + kGroupPanels - 1) / kGroupPanels;
  const IndexRange mine = SplitEvenly(groups, worker, step.pool.size());
  for (int32_t g = mine.begin; g < mine.end; ++g) {
    const int32_t end = std::min((g + 1) * kGroupPanels, head.panels());
    const int32_t col = g * kLogitGroup, cols = std::min(kLogitGroup, vocab - col);
    Linear(head, {g * kGroupPanels, end}, h, {step.act.logits.data(), vocab}, step.act.workers[worker].linear);
    for (int32_t row = 0; row < h.rows; ++row) {
      GroupMaxima(step.act.logits.data() + int64_t{row} * vocab + col, cols,
                  &step.act.group_max[int64_t{row} * groups + g]);
    }
  }
}

}  // namespace quire
