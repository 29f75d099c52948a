// The oneDNN ukernels of one attention shape: all row counts and tile lengths that a step can ask
// for, generated at start. Read-only afterwards and shared by the workers, each with its own
// scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/kernels/attention_plan.h"
#include "runtime/kernels/onednn/brgemm.h"
#include "runtime/kv_cache/kv_layout.h"

namespace quire {

// A tile of which no row sees more than the first 16, 32 or 48 tokens is computed that far: the
// rest has weight 0.
inline constexpr int32_t kTokenStep = 16;

class AttentionUkernels {
 public:
  // For query tiles of more than `min_rows` rows; o_stride: floats from row to row of o. bf16: K
  // and V as in a bf16 pool, q and p in bf16 too; else all f32.
  absl::Status Generate(const KvLayout& layout, const QueryTiling& tiling, int32_t min_rows,
                        int32_t o_stride, bool bf16);

  // Short tiles are served for whole query tiles; other row counts take 64 tokens.
  bool HasShortTiles(int32_t rows) const { return sets_[rows].short_tiles; }
  // s [rows][64] = q [rows][head_dim] k [head_dim][64], of the first `tokens` columns.
  const Brgemm& Scores(int32_t rows, int32_t tokens) const;
  // o [rows][o_stride] += p [rows][64] v [tokens][width], one V panel.
  const Brgemm& Values(int32_t rows, int32_t tokens, int32_t width) const;
  size_t scratch_bytes() const { return scratch_bytes_; }

  // Whether a full query tile's products equal sequential fma bit for bit on this processor: what
  // makes decode equal prefill. Takes about a millisecond.
  bool EqualSequentialFma() const;
  // Whether a row gets the same bits from every ukernel, and from the own bf16 tile of up to
  // `own_rows` rows.
  bool Bf16RowsAgree(int32_t own_rows) const;

 private:
  static constexpr int32_t kSizes = kBlockTokens / kTokenStep;
  struct Set {
    Brgemm qk[kSizes], pv[kSizes], pv_tail[kSizes];
    bool short_tiles = false;
  };
  absl::Status Add(int32_t rows, int32_t tokens);
  absl::Status Make(Brgemm& slot, const BrgemmShape& shape);

  Set sets_[kQueryTileRows + 1];
  KvLayout layout_;
  int32_t max_rows_ = 0;  // 0: none were needed
  int32_t o_stride_ = 0;
  bool bf16_ = false;
  size_t scratch_bytes_ = 0;
};

}  // namespace quire
