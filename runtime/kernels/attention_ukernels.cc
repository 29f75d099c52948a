#include "runtime/kernels/attention_ukernels.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/kernels/attention_tiles.h"

namespace quire {

absl::Status AttentionUkernels::Make(Brgemm& slot, const BrgemmShape& shape) {
  ASSIGN_OR_RETURN(slot, Brgemm::Create(shape));
  scratch_bytes_ = std::max(scratch_bytes_, slot.scratch_bytes());
  return absl::OkStatus();
}

absl::Status AttentionUkernels::Add(int32_t rows, int32_t tokens) {
  Set& set = sets_[rows];
  const int32_t dim = layout_.head_dim, tail = dim % KvLayout::kPanelDims,
                size = tokens / kTokenStep - 1;
  RETURN_IF_ERROR(Make(set.qk[size], {.m = rows,
                                      .n = tokens,
                                      .k = dim,
                                      .lda = dim,
                                      .ldb = kBlockTokens,
                                      .ldc = kBlockTokens,
                                      .add_c = false}));
  BrgemmShape pv = {.m = rows,
                    .n = KvLayout::kPanelDims,
                    .k = tokens,
                    .lda = kBlockTokens,
                    .ldb = KvLayout::kPanelDims,
                    .ldc = o_stride_,
                    .add_c = true};
  if (dim >= KvLayout::kPanelDims) RETURN_IF_ERROR(Make(set.pv[size], pv));
  pv.n = pv.ldb = tail;
  return tail == 0 ? absl::OkStatus() : Make(set.pv_tail[size], pv);
}

absl::Status AttentionUkernels::Generate(const KvLayout& layout, const QueryTiling& tiling,
                                         int32_t min_rows, int32_t o_stride) {
  layout_ = layout;
  o_stride_ = o_stride;
  const int32_t last_heads = tiling.group - (tiling.head_tiles - 1) * tiling.heads_per_tile;
  for (int32_t token = 1; token <= tiling.tokens_per_tile; ++token) {
    const int32_t rows = token * tiling.heads_per_tile;
    if (rows > min_rows) RETURN_IF_ERROR(Add(rows, kBlockTokens));
  }
  if (last_heads != tiling.heads_per_tile && last_heads > min_rows)
    RETURN_IF_ERROR(Add(last_heads, kBlockTokens));
  if (tiling.max_rows() <= min_rows) return absl::OkStatus();
  max_rows_ = tiling.max_rows();
  for (int32_t tokens = kTokenStep; tokens < kBlockTokens; tokens += kTokenStep)
    RETURN_IF_ERROR(Add(max_rows_, tokens));
  sets_[max_rows_].short_tiles = true;
  return absl::OkStatus();
}

const Brgemm& AttentionUkernels::Scores(int32_t rows, int32_t tokens) const {
  return sets_[rows].qk[tokens / kTokenStep - 1];
}

const Brgemm& AttentionUkernels::Values(int32_t rows, int32_t tokens, int32_t width) const {
  const Set& set = sets_[rows];
  const int32_t size = tokens / kTokenStep - 1;
  return width == KvLayout::kPanelDims ? set.pv[size] : set.pv_tail[size];
}

bool AttentionUkernels::EqualSequentialFma() const {
  if (max_rows_ == 0) return true;
  const int32_t dim = layout_.head_dim, width = std::min(dim, KvLayout::kPanelDims);
  std::vector<float> a(static_cast<size_t>(max_rows_) * std::max(dim, kBlockTokens)),
      b(static_cast<size_t>(dim) * kBlockTokens);
  uint32_t state = 1;
  for (std::vector<float>* values : {&a, &b}) {
    for (float& value : *values) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
    }
  }
  std::vector<std::byte> scratch(scratch_bytes_ + 64);
  std::byte* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64);
  const auto equal = [&](const Brgemm& brgemm, TileProduct product) {
    std::vector<float> expected(static_cast<size_t>(max_rows_) * product.ldc, 0.75f),
        got = expected;
    product.a = a.data();
    product.b = reinterpret_cast<const std::byte*>(b.data());
    product.rows = max_rows_;
    product.c = expected.data();
    SequentialProduct(product);
    brgemm.Run(a.data(), b.data(), got.data(), aligned);
    return std::memcmp(expected.data(), got.data(), expected.size() * sizeof(float)) == 0;
  };
  TileProduct scores = {}, values = {};
  scores.lda = scores.depth = dim;
  scores.ldb = scores.width = scores.ldc = kBlockTokens;
  values.lda = values.depth = kBlockTokens;
  values.ldb = values.width = width;
  values.ldc = o_stride_;
  values.add = true;
  return equal(Scores(max_rows_, kBlockTokens), scores) &&
         equal(Values(max_rows_, kBlockTokens, width), values);
}

}  // namespace quire
