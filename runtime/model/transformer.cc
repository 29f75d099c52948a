#include "runtime/model/transformer.h"

#include <algorithm>
#include <array>

#include "runtime/kernels/kv_append.h"
#include "runtime/kernels/linear.h"
#include "runtime/kernels/logit_scan.h"
#include "runtime/kernels/pack.h"
#include "runtime/kernels/quantize.h"
#include "runtime/kernels/rms_norm.h"
#include "runtime/kernels/swiglu.h"
#include "runtime/kv_cache/block_copy.h"

namespace quire {
namespace {

constexpr int32_t kRowGrain = 4;     // rows of norm and quantise, about 2 us
constexpr int32_t kAppendGrain = 8;  // (KV head, row) pairs, about 4 us
// Of a product: what a slow processor holds up is a sixth of its part.
constexpr int32_t kGrainsPerPart = 6;

// The first `rows` x `cols` of a buffer made for at least as many.
ActRows ViewOf(const ActBuffer& buffer, int32_t rows, int32_t cols) {
  ActRows view = buffer.rows;
  view.rows = rows;
  view.cols = cols;
  return view;
}

// Prepares `rows` rows of `cols` by fn(view, begin, end): few rows by every worker for itself, in
// its own buffer and without a barrier; else shared, in the common buffer.
template <typename F>
ActRows PrepareRows(const Step& step, int32_t worker, int32_t rows, int32_t cols, F&& fn) {
  if (rows <= kPrivateRows) {
    const ActRows view = ViewOf(step.act.workers[worker].hidden, rows, cols);
    fn(view, 0, rows);
    return view;
  }
  const ActRows view = ViewOf(step.act.hidden, rows, cols);
  step.pool.Share(worker, rows, kRowGrain,
                  [&](int32_t begin, int32_t end) { fn(view, begin, end); });
  return view;
}

float* MutableRow(const ActRows& rows, int32_t row) {
  return const_cast<float*>(rows.f32) +
         row * rows.f32_stride;  // buffers are ours; kernels see them const
}

// Adds the int8 form of rows that are in place as f32, if they divide into blocks; else only f32
// products follow.
void QuantizeIfWhole(const ActRows& rows, int32_t begin, int32_t end) {
  if (rows.cols % kQuantBlock == 0) QuantizeRows(rows, begin, end);
}

int32_t RoundDown(int32_t value, int32_t multiple) { return value / multiple * multiple; }

void NormInto(const Step& step, std::span<const float> weight, const ActRows& out,
              IndexRange rows) {
  const int32_t hidden = step.config.hidden_size;
  for (int32_t row = rows.begin; row < rows.end; ++row) {
    RmsNorm(step.act.x.data() + int64_t{row} * hidden, weight.data(), step.config.rms_eps, hidden,
            MutableRow(out, row));
  }
  QuantizeIfWhole(out, rows.begin, rows.end);
}

// Asks for the lines that appending a row will write: a K column touches a line per pair of dims,
// all cold when the row's sequence last ran a step ago. Rows of one block follow each other in a
// prefill and share their lines.
void PrefetchSlot(const KvLayerView& kv, std::span<const KvSlot> slots, int32_t row, int32_t head) {
  const BlockId block = BlockOf(slots[row]);
  if (row > 0 && block == BlockOf(slots[row - 1])) return;
  const KvLayout& layout = kv.layout;
  const int32_t token = OffsetOf(slots[row]);
  const std::byte* k = kv.KTile(block, head);
  for (int32_t dim = 0; dim < layout.head_dim; dim += layout.pack) {
    __builtin_prefetch(k + layout.KIndex(token, dim) * layout.element_bytes(), 1);
  }
  const std::byte* v = kv.VTile(block, head) + layout.VIndex(token, 0) * layout.element_bytes();
  const size_t v_bytes = layout.PanelWidth(0) * layout.pack * layout.element_bytes();
  for (size_t i = 0; i < v_bytes; i += 64) __builtin_prefetch(v + i, 1);
}

// Panels of a range: in pairs where the kernels take pairs.
int32_t PanelUnit(int32_t rows) { return rows >= kPairedRows ? 2 : 1; }

// Panels that are computed at a time: so few that rows x columns stay in L2 and that a worker's
// part has several, a multiple of `unit`.
int32_t PanelGrain(const Step& step, int32_t panels, int32_t rows, int32_t unit) {
  const int32_t fit = kTileFloats / rows / kPanelRows,
                share = panels / step.pool.size() / kGrainsPerPart;
  return std::max(unit, RoundDown(std::min(fit, share), unit));
}

}  // namespace

void CopyAndEmbed(const Step& step, int32_t worker) {
  const StepBatch& batch = *step.batch;
  if (!batch.copies.empty()) {
    step.pool.Share(worker, step.config.num_layers, 1, [&](int32_t begin, int32_t end) {
      for (int32_t i = begin; i < end; ++i) CopyBlocks(step.kv.Layer(i), batch.copies);
    });
  }
  const int32_t hidden = step.config.hidden_size, factors = 2 * step.config.rope_dims;
  step.pool.Share(worker, step.rows(), kRowGrain, [&](int32_t begin, int32_t end) {
    for (int32_t row = begin; row < end; ++row) {
      UnpackRow(step.weights.embedding, static_cast<int32_t>(batch.tokens[row]),
                step.act.x.data() + int64_t{row} * hidden);
      step.rope.FillRow(batch.positions[row], step.act.rope.data() + int64_t{row} * factors);
    }
  });
}

ActRows NormRows(const Step& step, int32_t worker, std::span<const float> weight) {
  return PrepareRows(step, worker, step.rows(), step.config.hidden_size,
                     [&](const ActRows& out, int32_t begin, int32_t end) {
                       NormInto(step, weight, out, {begin, end});
                     });
}

ActRows NormRowsWithResidual(const Step& step, int32_t worker, std::span<const float> weight) {
  const int32_t rows = step.rows();
  const auto with_residuals = [rows](ActRows view) {
    view.rows = 2 * rows;
    return view;
  };
  return with_residuals(PrepareRows(step, worker, rows, step.config.hidden_size,
                                    [&](const ActRows& out, int32_t begin, int32_t end) {
                                      NormInto(step, weight, out, {begin, end});
                                      if (out.cols % kQuantBlock != 0) return;
                                      for (int32_t row = begin; row < end; ++row)
                                        QuantizeResidual(with_residuals(out), row, rows + row);
                                    }));
}

void ProjectQkv(const Step& step, int32_t worker, const LayerWeights& layer, const ActRows& h) {
  const std::array<const PackedMatrix*, 3> parts = {&layer.wq, &layer.wk, &layer.wv};
  const int32_t panels = layer.wq.panels() + layer.wk.panels() + layer.wv.panels();
  const int32_t unit = PanelUnit(step.rows());
  const int32_t grain = std::max(unit, RoundDown(panels / step.pool.size() / kGrainsPerPart, unit));
  step.pool.Share(worker, panels, grain, [&](int32_t begin, int32_t end) {
    float* out = step.act.qkv.data();
    int32_t first = 0;  // panel of [Wq; Wk; Wv] where the part starts
    for (const PackedMatrix* w : parts) {
      const PanelRange range = {std::max(begin - first, 0), std::min(end - first, w->panels())};
      if (range.begin < range.end) {
        const int32_t computed =
            w == &layer.wv && UsesQuantizedActivations(w->type) ? h.rows : step.rows();
        Linear(*w, range, h.Slice(0, computed), {out, step.qkv_cols()},
               step.act.workers[worker].linear);
      }
      first += w->panels();
      out += w->rows;
    }
  });
}

void RotateAndAppend(const Step& step, int32_t worker, int32_t layer) {
  const ModelConfig& c = step.config;
  const int32_t group = c.num_heads / c.num_kv_heads, rows = step.rows();
  float* q = step.act.qkv.data();
  float* k = q + step.q_cols();
  float* v = k + step.kv_cols();
  const int64_t stride = step.qkv_cols(), factors = int64_t{2} * c.rope_dims;
  const bool residuals = UsesQuantizedActivations(step.weights.layers[layer].wv.type);
  const KvLayerView kv = step.kv.Layer(layer);
  // Items are (KV head, row), heads outside: a KV head's rows are appended together.
  step.pool.Share(worker, rows * c.num_kv_heads, kAppendGrain, [&](int32_t item, int32_t last) {
    while (item < last) {
      const int32_t head = item / rows, begin = item % rows,
                    end = std::min(rows, begin + last - item);
      for (int32_t row = begin; row < end; ++row) {
        if (row + 1 < end) PrefetchSlot(kv, step.batch->slots, row + 1, head);
        const float* f = step.act.rope.data() + row * factors;
        float* q_heads = q + row * stride + head * group * c.head_dim;
        float* k_head = k + row * stride + head * c.head_dim;
        float* v_head = v + row * stride + head * c.head_dim;
        if (residuals) AddTo(v_head, v_head + rows * stride, c.head_dim);
        ApplyRope(step.rope, f, {q_heads, group, c.head_dim});
        ApplyRope(step.rope, f, {k_head, 1, c.head_dim});
      }
      AppendKv(kv, {step.batch->slots, k, v, stride}, {begin, end, head, head + 1});
      item += end - begin;
    }
  });
}

void Attend(const Step& step, int32_t worker, int32_t layer) {
  const AttentionIo io = {step.act.qkv.data(), step.qkv_cols(), step.act.attention.data(),
                          step.q_cols()};
  step.attention.Run(worker, layer, step.kv.Layer(layer), io);
  step.pool.Barrier();
}

ActRows AttentionRows(const Step& step, int32_t worker) {
  const auto at_results = [&](ActRows view) {
    view.f32 = step.act.attention.data();
    view.f32_stride = step.q_cols();
    return view;
  };
  return at_results(PrepareRows(step, worker, step.rows(), step.q_cols(),
                                [&](const ActRows& out, int32_t begin, int32_t end) {
                                  QuantizeIfWhole(at_results(out), begin, end);
                                }));
}

void AddProduct(const Step& step, int32_t worker, const PackedMatrix& w, const ActRows& h) {
  WorkerScratch& scratch = step.act.workers[worker];
  step.pool.Share(worker, w.panels(), PanelGrain(step, w.panels(), h.rows, PanelUnit(h.rows)),
                  [&](int32_t begin, int32_t end) {
                    const int32_t col = begin * kPanelRows,
                                  cols = std::min(end * kPanelRows, w.rows) - col;
                    Linear(w, {begin, end}, h, {scratch.tile.data() - col, cols}, scratch.linear);
                    for (int32_t row = 0; row < h.rows; ++row) {
                      AddTo(step.act.x.data() + int64_t{row} * w.rows + col,
                            scratch.tile.data() + int64_t{row} * cols, cols);
                    }
                  });
}

void GateAndUp(const Step& step, int32_t worker, const LayerWeights& layer, const ActRows& h) {
  // Panels of one block of the quantised result.
  constexpr int32_t kUnit = kQuantBlock / kPanelRows;
  const int32_t panels = layer.gate.panels(), units = (panels + kUnit - 1) / kUnit;
  const int32_t grain = PanelGrain(step, panels, h.rows, kUnit) / kUnit;
  WorkerScratch& scratch = step.act.workers[worker];
  const ActRows out = FfnRows(step);
  step.pool.Share(worker, units, grain, [&](int32_t first, int32_t last) {
    const PanelRange range = {first * kUnit, std::min(last * kUnit, panels)};
    const int32_t col = range.begin * kPanelRows,
                  cols = std::min(range.end * kPanelRows, layer.gate.rows) - col;
    float* gate = scratch.tile.data();
    float* up = gate + int64_t{h.rows} * cols;
    Linear(layer.gate, range, h, {gate - col, cols}, scratch.linear);
    Linear(layer.up, range, h, {up - col, cols}, scratch.linear);
    const bool quantized = UsesQuantizedActivations(layer.down.type);
    for (int32_t row = 0; row < h.rows; ++row) {
      float* gate_row = gate + int64_t{row} * cols;
      // Of quantised products nobody reads the f32 rows: the tile serves as their place.
      float* hidden = quantized ? gate_row : MutableRow(out, row) + col;
      SwiGlu(gate_row, up + int64_t{row} * cols, cols, hidden);
      if (quantized) QuantizeColumns(hidden, out, row, col, cols);
    }
  });
}

ActRows FfnRows(const Step& step) {
  return ViewOf(step.act.ffn, step.rows(), step.config.ffn_size);
}

void Logits(const Step& step, int32_t worker) {
  const StepBatch& batch = *step.batch;
  if (batch.logits_rows == 0) return;
  const int32_t hidden = step.config.hidden_size, vocab = step.config.vocab_size;
  const auto norm = [&](const ActRows& out, int32_t begin, int32_t end) {
    for (const SeqSpan& seq : batch.seqs) {
      const int32_t last = seq.row_begin + seq.row_count;
      for (int32_t i = 0; i < seq.logits_count; ++i) {
        const int32_t to = seq.logits_begin + i, from = last - seq.logits_count + i;
        if (to < begin || to >= end) continue;
        RmsNorm(step.act.x.data() + int64_t{from} * hidden, step.weights.output_norm.data(),
                step.config.rms_eps, hidden, MutableRow(out, to));
      }
    }
    QuantizeIfWhole(out, begin, end);
  };
  const ActRows h = PrepareRows(step, worker, batch.logits_rows, hidden, norm);

  static_assert(kLogitGroup == kScanGroup);
  constexpr int32_t kGroupPanels = kLogitGroup / kPanelRows;
  const PackedMatrix& head = step.weights.lm_head;
  const int32_t groups = (head.panels() + kGroupPanels - 1) / kGroupPanels;
  step.pool.Share(worker, groups, 1, [&](int32_t g, int32_t) {
    const int32_t end = std::min((g + 1) * kGroupPanels, head.panels());
    const int32_t col = g * kLogitGroup, cols = std::min(kLogitGroup, vocab - col);
    Linear(head, {g * kGroupPanels, end}, h, {step.act.logits.data(), vocab},
           step.act.workers[worker].linear);
    for (int32_t row = 0; row < h.rows; ++row) {
      GroupMaxima(step.act.logits.data() + int64_t{row} * vocab + col, cols,
                  &step.act.group_max[int64_t{row} * groups + g]);
    }
  });
}

}  // namespace quire
