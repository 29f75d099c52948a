#include "runtime/kernels/attention_ukernels.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/kernels/attention_bf16.h"
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
                                      .add_c = false,
                                      .bf16 = bf16_}));
  BrgemmShape pv = {.m = rows,
                    .n = KvLayout::kPanelDims,
                    .k = tokens,
                    .lda = kBlockTokens,
                    .ldb = KvLayout::kPanelDims,
                    .ldc = o_stride_,
                    .add_c = true,
                    .bf16 = bf16_};
  if (dim >= KvLayout::kPanelDims) RETURN_IF_ERROR(Make(set.pv[size], pv));
  pv.n = pv.ldb = tail;
  return tail == 0 ? absl::OkStatus() : Make(set.pv_tail[size], pv);
}

absl::Status AttentionUkernels::Generate(const KvLayout& layout, const QueryTiling& tiling,
                                         int32_t min_rows, int32_t o_stride, bool bf16) {
  layout_ = layout;
  bf16_ = bf16;
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

bool AttentionUkernels::Bf16RowsAgree(int32_t own_rows) const {
  if (max_rows_ == 0) return true;
  const int32_t dim = layout_.head_dim, depth = std::max(dim, kBlockTokens);
  std::vector<uint16_t> a(static_cast<size_t>(max_rows_) * depth), b(layout_.tile_elements());
  uint32_t state = 1;
  for (std::vector<uint16_t>* values : {&a, &b}) {
    for (uint16_t& value : *values) {  // of either sign, 2^-16 to 1
      state = state * 1664525u + 1013904223u;
      value = static_cast<uint16_t>((state >> 16 & 0x87ff) + 0x3780);
    }
  }
  std::vector<std::byte> scratch(scratch_bytes_ + 64);
  std::byte* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64);
  // Of `rows` rows, all by one call.
  const auto run = [&](int32_t rows, bool own, int32_t width, bool values) {
    const int32_t ldc = values ? o_stride_ : kBlockTokens;
    std::vector<float> c(static_cast<size_t>(max_rows_) * ldc, 0.75f);
    if (own) {
      Bf16ProductAvx512({.a = a.data(),
                         .lda = values ? kBlockTokens : dim,
                         .b = reinterpret_cast<const std::byte*>(b.data()),
                         .ldb = width,
                         .depth = values ? kBlockTokens : dim,
                         .width = width,
                         .c = c.data(),
                         .ldc = ldc,
                         .rows = rows,
                         .add = values,
                         .prefetch = {}});
    } else {
      const Brgemm& brgemm =
          values ? Values(rows, kBlockTokens, width) : Scores(rows, kBlockTokens);
      brgemm.Run(a.data(), b.data(), c.data(), aligned);
    }
    c.resize(static_cast<size_t>(rows) * ldc);
    return c;
  };
  const auto agree = [&](int32_t width, bool values) {
    const std::vector<float> all = run(max_rows_, false, width, values);
    for (int32_t rows = 1; rows < max_rows_; ++rows) {
      const bool own = rows <= own_rows;
      if (!own && sets_[rows].qk[kSizes - 1].empty()) continue;
      const std::vector<float> some = run(rows, own, width, values);
      if (std::memcmp(some.data(), all.data(), some.size() * sizeof(float)) != 0) return false;
    }
    return true;
  };
  if (!agree(kBlockTokens, false)) return false;
  for (int32_t panel = 0; panel < layout_.num_panels(); ++panel) {
    if (!agree(layout_.PanelWidth(panel), true)) return false;
  }
  return true;
}

}  // namespace quire
