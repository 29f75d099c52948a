#include "runtime/model/activations.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/kernels/linear.h"
#include "runtime/step_batch.h"

namespace quire {
namespace {

// Sums sizes first, hands out spans second: the same walk over the same list, so the two cannot
// differ.
class Layout {
 public:
  explicit Layout(Arena* arena) : arena_(arena) {}

  template <typename T>
  std::span<T> Take(int64_t count) {
    bytes_ += Arena::Align(static_cast<size_t>(count) * sizeof(T));
    return arena_ == nullptr ? std::span<T>() : arena_->TakeArray<T>(static_cast<size_t>(count));
  }
  ActBuffer TakeActs(int32_t rows, int32_t cols) {
    ActBuffer buffer;
    buffer.f32 = Take<float>(int64_t{rows} * cols);
    // Whole blocks of 32: a model of float weights alone may have other widths, and never reads the
    // int8 part.
    const int32_t padded = (cols + kQuantBlock - 1) / kQuantBlock * kQuantBlock;
    const std::span<std::byte> bytes = Take<std::byte>(ActBufferBytes(rows, padded));
    if (arena_ == nullptr) return buffer;
    buffer.rows = MakeActRows(bytes, rows, padded, buffer.f32.data(), cols);
    return buffer;
  }
  size_t bytes() const { return bytes_; }

 private:
  Arena* arena_;
  size_t bytes_ = 0;
};

void Fill(Activations& a, const ModelConfig& c, const ActivationSizes& sizes, Layout& layout) {
  const int64_t rows = sizes.max_rows, logits = sizes.max_logits_rows;
  const int32_t q = c.num_heads * c.head_dim, kv = c.num_kv_heads * c.head_dim;
  const int32_t wide = std::max(c.hidden_size, q);
  const int32_t prepared = std::max(2 * sizes.max_rows, sizes.max_logits_rows);
  a.x = layout.Take<float>(rows * c.hidden_size);
  a.rope = layout.Take<float>(rows * 2 * c.rope_dims);
  a.qkv = layout.Take<float>(2 * rows * (q + 2 * kv));
  a.attention = layout.Take<float>(rows * q);
  a.hidden = layout.TakeActs(prepared, wide);
  a.ffn = layout.TakeActs(sizes.max_rows, c.ffn_size);
  a.logits = layout.Take<float>(logits * c.vocab_size);
  a.group_max = layout.Take<float>(logits * ((c.vocab_size + kLogitGroup - 1) / kLogitGroup));
  a.workers.resize(static_cast<size_t>(sizes.workers));
  for (WorkerScratch& w : a.workers) {
    w.hidden = layout.TakeActs(2 * kPrivateRows, wide);
    w.tile = layout.Take<float>(2 * std::max<int64_t>(kTileFloats, rows * kQuantBlock));
    w.linear = layout.Take<std::byte>(static_cast<int64_t>(LinearScratchBytes()));
  }
}

}  // namespace

absl::StatusOr<Activations> Activations::Create(const ModelConfig& config,
                                                const ActivationSizes& sizes) {
  Activations activations;
  Layout measure(nullptr);
  Fill(activations, config, sizes, measure);
  ASSIGN_OR_RETURN(activations.arena, Arena::Create(measure.bytes()));
  activations.arena.Touch();
  Layout take(&activations.arena);
  Fill(activations, config, sizes, take);
  return activations;
}

}  // namespace quire
