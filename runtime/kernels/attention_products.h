// The two products of attention, Q K and P V, of one query tile and one tile of 64 tokens: which
// code computes them and in what arithmetic. Chosen once; read-only afterwards, every worker with
// its own scratch. Owns the ukernels. Invariant: a row's bits do not depend on the rows beside it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/attention.h"
#include "runtime/kernels/attention_int.h"
#include "runtime/kernels/attention_plan.h"
#include "runtime/kernels/attention_tiles.h"
#include "runtime/kernels/attention_ukernels.h"
#include "runtime/kv_cache/kv_layout.h"

namespace quire {

// What one product works on: the first `tokens` of a tile, for `rows` rows.
struct TileSize {
  int32_t rows, tokens;
};

// One worker's; every part 64-byte aligned. The sizes are TileProducts::scratch_sizes().
struct ProductScratch {
  float* q;              // [rows][head_dim], scaled
  float* s;              // [rows][64] scores, then weights
  std::byte* q_operand;  // q as the products read it, if not in f32
  std::byte* p_operand;  // likewise the weights
  std::byte* kv;         // one widened tile
  std::byte* ukernel;
};

struct ProductScratchSizes {
  size_t q, s, q_operand, p_operand, kv, ukernel;
};

class TileProducts {
 public:
  // o_stride: floats from row to row of the sums that AddValues adds to.
  void Choose(const AttentionOptions& options, const KvLayout& layout, const QueryTiling& tiling,
              int32_t o_stride);

  ProductScratchSizes scratch_sizes() const;
  bool uses_ukernels() const { return ukernels_used_; }
  bool uses_bf16() const { return bf16_; }
  // Whether tiles of fewer than 64 tokens can be asked for; multiples of 16.
  bool AnySize(int32_t rows) const {
    return rows <= own_rows_ || !ukernels_used_ || ukernels_.HasShortTiles(rows);
  }

  // After w.q was written, before Scores.
  void TakeQueries(int32_t rows, const ProductScratch& w) const;
  // w.s = w.q K.
  void Scores(TileSize size, const ProductScratch& w, const std::byte* k_tile,
              const Prefetch& next_v) const;
  // o += w.s V. next_k: the K tile that Scores reads next.
  void AddValues(TileSize size, const ProductScratch& w, const std::byte* v_tile,
                 const Prefetch& next_k, const AttentionState& state) const;

 private:
  bool ChooseBf16(const AttentionOptions& options);
  void ChooseF32(const AttentionOptions& options);
  const float* Widened(const std::byte* tile, int32_t depth, int32_t width, int32_t columns,
                       const ProductScratch& w) const;
  void ScoresInt(TileSize size, const ProductScratch& w, const std::byte* k_tile,
                 const Prefetch& next_v) const;
  void AddValuesInt(TileSize size, const ProductScratch& w, const std::byte* v_tile,
                    const Prefetch& next_k, const AttentionState& state) const;
  void MultiplyInt(IntProduct product, const ProductScratch& w) const;
  void Multiply(const TileProduct& product, const Brgemm* ukernel, int32_t columns,
                const ProductScratch& w) const;
  void MultiplyBf16(const TileProduct& product, const uint16_t* a, const Brgemm* ukernel,
                    const ProductScratch& w) const;

  KvLayout layout_;
  QueryTiling tiling_;
  const AttentionTiles* tiles_ = nullptr;
  const IntTiles* int_tiles_ = nullptr;  // of an integer KV cache; the rest is unused then
  int32_t o_stride_ = 0;
  int32_t own_rows_ = 0;  // up to so many rows our own tile serves
  bool bf16_ = false, bf16_code_ = false;
  bool sequential_ = false;  // plain loops where there is a choice
  bool ukernels_used_ = false;
  AttentionUkernels ukernels_;
};

}  // namespace quire
