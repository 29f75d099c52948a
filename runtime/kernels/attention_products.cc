// Invariant: a code path that serves only some row counts gives the bits of the others, by
// definition (own tiles and plain loops: sequential over the reduced dimension) or by the self-test
// at start (ukernels).
#include "runtime/kernels/attention_products.h"

#include <algorithm>

#include "absl/log/log.h"
#include "absl/status/status.h"
#include "runtime/kernels/attention_bf16.h"
#include "runtime/kernels/hadamard.h"

namespace quire {
namespace {

// Up to this many rows the own tile beats widening and a ukernel
// (tests/bench/kernels_attention_bench.cc).
int32_t OwnTileRows(IsaLevel isa) {
  return isa >= IsaLevel::kAvx512 ? 12 : isa >= IsaLevel::kAvx2 ? 6 : 0;
}
constexpr int32_t kOwnBf16Rows = 12;
// Above, a tile of s8 is widened to s16 once instead of for every pass over the rows.
constexpr int32_t kWidenIntRows = 12;

Prefetch PartOf(const Prefetch& whole, int32_t row, int32_t rows) {
  return {.start = whole.start + int64_t{row} * whole.stride,
          .rows = std::min(rows, whole.rows - row),
          .row_bytes = whole.row_bytes,
          .stride = whole.stride};
}

// The scales of a 16-bit operand of `count` elements, an even number.
float* ScalesBehind(int16_t* operand, int32_t count) {
  return reinterpret_cast<float*>(operand + count);
}

}  // namespace

void TileProducts::Choose(const AttentionOptions& options, const KvLayout& layout,
                          const QueryTiling& tiling, int32_t o_stride) {
  layout_ = layout;
  tiling_ = tiling;
  o_stride_ = o_stride;
  tiles_ = &AttentionTilesFor(options.isa);
  sequential_ = options.products == AttentionProducts::kSequential;
  if (layout.scaled()) {
    int_tiles_ = &IntTilesFor(options.isa);
    return;
  }
  if (ChooseBf16(options)) return;
  ChooseF32(options);
}

// False if bf16 is not wanted, or its bits would depend on the number of rows.
bool TileProducts::ChooseBf16(const AttentionOptions& options) {
  const bool wanted = options.arithmetic == AttentionArithmetic::kBF16 ||
                      (options.arithmetic == AttentionArithmetic::kBest && HasFastBf16Dot() &&
                       options.isa == IsaLevel::kAvx512Bf16);
  if (!wanted || layout_.dtype != KvDType::kBF16) return false;
  bf16_ = true;
  bf16_code_ = options.isa >= IsaLevel::kAvx512Bf16;
  if (!bf16_code_ || options.products == AttentionProducts::kSequential) {
    bf16_code_ = false;
    return true;
  }
  const bool own_possible = layout_.head_dim % 16 == 0;
  const bool own_wanted = options.products == AttentionProducts::kFastest && own_possible;
  // The own tile only if it gives the ukernels' bits.
  for (int32_t own_rows : {own_wanted ? kOwnBf16Rows : 0, 0}) {
    ukernels_ = AttentionUkernels();
    const absl::Status status =
        ukernels_.Generate(layout_, tiling_, own_rows, o_stride_, /*bf16=*/true);
    if (!status.ok()) {
      LOG(WARNING) << "attention without oneDNN ukernels: " << status;
      if (own_possible) own_rows_ = kQueryTileRows;
      return true;
    }
    if (ukernels_.Bf16RowsAgree(own_rows)) {
      own_rows_ = own_rows;
      ukernels_used_ = true;
      return true;
    }
  }
  LOG(WARNING) << "attention in f32: the bf16 ukernels' results depend on the number of rows";
  ukernels_ = AttentionUkernels();
  bf16_ = bf16_code_ = false;
  return false;
}

// Own tile for few rows, ukernels for the rest. Where these cannot be generated, or would not give
// the own tile's bits, the own tile serves all it can.
void TileProducts::ChooseF32(const AttentionOptions& options) {
  const bool own_possible = options.isa >= IsaLevel::kAvx2 && layout_.dtype == KvDType::kBF16 &&
                            layout_.head_dim % 16 == 0;
  if (options.products == AttentionProducts::kFastest && own_possible)
    own_rows_ = OwnTileRows(options.isa);
  if (options.products == AttentionProducts::kSequential || options.isa == IsaLevel::kScalar)
    return;
  const absl::Status status =
      ukernels_.Generate(layout_, tiling_, own_rows_, o_stride_, /*bf16=*/false);
  ukernels_used_ = status.ok();
  if (status.ok() && ukernels_.EqualSequentialFma()) return;
  if (own_possible) own_rows_ = kQueryTileRows;
  LOG(WARNING) << "attention without oneDNN ukernels: "
               << (status.ok() ? "their results depend on the number of rows" : status.ToString());
}

ProductScratchSizes TileProducts::scratch_sizes() const {
  const size_t rows = static_cast<size_t>(tiling_.max_rows());
  const size_t dim = static_cast<size_t>(layout_.head_dim);
  // Rows of 16-bit operands; those of integers have a scale each, behind them.
  const size_t operand_bytes = bf16_ || int_tiles_ != nullptr ? sizeof(uint16_t) : 0;
  const size_t scales = int_tiles_ != nullptr ? sizeof(float) * rows : 0;
  const size_t element_bytes = int_tiles_ != nullptr ? sizeof(int16_t) : bf16_ ? 0 : sizeof(float);
  return {.q = sizeof(float) * rows * dim,
          .s = sizeof(float) * rows * kBlockTokens,
          .q_operand = operand_bytes * rows * dim + scales,
          .p_operand = operand_bytes * rows * kBlockTokens + scales,
          .kv = element_bytes * layout_.tile_elements(),
          .ukernel = ukernels_.scratch_bytes()};
}

// The B operand in f32: the tile itself, or widened into scratch.
const float* TileProducts::Widened(const std::byte* tile, int32_t depth, int32_t width,
                                   int32_t columns, const ProductScratch& w) const {
  if (layout_.dtype == KvDType::kF32) return reinterpret_cast<const float*>(tile);
  float* wide = reinterpret_cast<float*>(w.kv);
  tiles_->widen(tile, depth, width, columns, wide);
  return wide;
}

void TileProducts::Multiply(const TileProduct& product, const Brgemm* ukernel, int32_t columns,
                            const ProductScratch& w) const {
  if (product.rows <= own_rows_) {
    tiles_->product(product);
    return;
  }
  const float* b = Widened(product.b, product.depth, product.ldb, columns, w);
  if (ukernel != nullptr) {
    ukernel->Run(product.a, b, product.c, w.ukernel);
    return;
  }
  TileProduct plain = product;
  plain.b = reinterpret_cast<const std::byte*>(b);
  SequentialProduct(plain);
}

void TileProducts::MultiplyBf16(const TileProduct& product, const uint16_t* a,
                                const Brgemm* ukernel, const ProductScratch& w) const {
  if (product.rows > own_rows_ && ukernel != nullptr) {
    ukernel->Run(a, product.b, product.c, w.ukernel);
    return;
  }
  const Bf16Product bf16 = {.a = a,
                            .lda = product.lda,
                            .b = product.b,
                            .ldb = product.ldb,
                            .depth = product.depth,
                            .width = product.width,
                            .c = product.c,
                            .ldc = product.ldc,
                            .rows = product.rows,
                            .add = product.add,
                            .prefetch = product.prefetch};
  product.rows <= own_rows_ ? Bf16ProductAvx512(bf16) : SequentialBf16Product(bf16);
}

void TileProducts::MultiplyInt(IntProduct product, const ProductScratch& w) const {
  if (sequential_) return SequentialIntProduct(product);
  if (!product.b_s16 && product.rows > kWidenIntRows) {
    int16_t* wide = reinterpret_cast<int16_t*>(w.kv);
    int_tiles_->widen(product.b, product.depth * product.ldb, wide);
    product.b = reinterpret_cast<const std::byte*>(wide);
    product.b_s16 = true;
  }
  int_tiles_->product(product);
}

void TileProducts::ScoresInt(TileSize size, const ProductScratch& w, const std::byte* k_tile,
                             const Prefetch& next_v) const {
  const int32_t dim = layout_.head_dim;
  int16_t* q = reinterpret_cast<int16_t*>(w.q_operand);
  MultiplyInt({.a = q,
               .lda = dim,
               .row_scale = ScalesBehind(q, size.rows * dim),
               .b = k_tile,
               .ldb = kBlockTokens,
               .b_s16 = layout_.dtype == KvDType::kInt16,
               .depth = dim,
               .width = size.tokens,
               .column_scale = reinterpret_cast<const uint16_t*>(k_tile + layout_.KScaleOffset()),
               .c = w.s,
               .ldc = kBlockTokens,
               .rows = size.rows,
               .prefetch = next_v},
              w);
}

void TileProducts::AddValuesInt(TileSize size, const ProductScratch& w, const std::byte* v_tile,
                                const Prefetch& next_k, const AttentionState& state) const {
  const int32_t word_rows = KvLayout::kPanelDims / layout_.pack;
  int16_t* weights = reinterpret_cast<int16_t*>(w.p_operand);
  float* scales = ScalesBehind(weights, size.rows * kBlockTokens);
  int_tiles_->quantize_weights(
      {.p = w.s,
       .token_scales = reinterpret_cast<const uint16_t*>(v_tile + layout_.VScaleOffset()),
       .rows = size.rows,
       .limit = OperandLimit(layout_.max_integer(), kBlockTokens)},
      weights, scales);
  for (int32_t panel = 0; panel < layout_.num_panels(); ++panel) {
    const int32_t dim = panel * KvLayout::kPanelDims, width = layout_.PanelWidth(panel);
    MultiplyInt({.a = weights,
                 .lda = kBlockTokens,
                 .row_scale = scales,
                 .b = v_tile + layout_.VIndex(0, dim) * layout_.element_bytes(),
                 .ldb = width,
                 .b_s16 = layout_.dtype == KvDType::kInt16,
                 .depth = size.tokens,
                 .width = width,
                 .column_scale = nullptr,
                 .c = state.o + dim,
                 .ldc = state.stride,
                 .rows = size.rows,
                 .prefetch = PartOf(next_k, panel * word_rows, word_rows)},
                w);
  }
}

void TileProducts::TakeQueries(int32_t rows, const ProductScratch& w) const {
  const int32_t dim = layout_.head_dim;
  if (int_tiles_ != nullptr) {
    int16_t* q = reinterpret_cast<int16_t*>(w.q_operand);
    float* scales = ScalesBehind(q, rows * dim);
    const int32_t limit = OperandLimit(layout_.max_integer(), dim);
    const float unscale = 1.0f / static_cast<float>(HadamardBlock(dim));
    for (int32_t row = 0; row < rows; ++row) {
      HadamardInPlace(w.q + row * dim, dim);
      int_tiles_->quantize(w.q + row * dim, dim, limit, q + row * dim, scales + row);
      scales[row] *= unscale;
    }
    return;
  }
  if (!bf16_) return;
  const auto round = bf16_code_ ? RoundToBf16Avx512 : SequentialRoundToBf16;
  round(w.q, rows * dim, reinterpret_cast<uint16_t*>(w.q_operand));
}

void TileProducts::Scores(TileSize size, const ProductScratch& w, const std::byte* k_tile,
                          const Prefetch& next_v) const {
  if (int_tiles_ != nullptr) return ScoresInt(size, w, k_tile, next_v);
  const int32_t dim = layout_.head_dim;
  const TileProduct product = {.a = w.q,
                               .lda = dim,
                               .b = k_tile,
                               .ldb = kBlockTokens,
                               .depth = dim,
                               .width = size.tokens,
                               .c = w.s,
                               .ldc = kBlockTokens,
                               .rows = size.rows,
                               .add = false,
                               .prefetch = next_v};
  const Brgemm* ukernel =
      ukernels_used_ && size.rows > own_rows_ ? &ukernels_.Scores(size.rows, size.tokens) : nullptr;
  if (bf16_) {
    MultiplyBf16(product, reinterpret_cast<const uint16_t*>(w.q_operand), ukernel, w);
  } else {
    Multiply(product, ukernel, size.tokens, w);
  }
}

void TileProducts::AddValues(TileSize size, const ProductScratch& w, const std::byte* v_tile,
                             const Prefetch& next_k, const AttentionState& state) const {
  if (int_tiles_ != nullptr) return AddValuesInt(size, w, v_tile, next_k, state);
  const int32_t rows = size.rows, tokens = size.tokens;
  const int32_t word_rows = KvLayout::kPanelDims / layout_.pack;  // of K, that go with a V panel
  uint16_t* weights = reinterpret_cast<uint16_t*>(w.p_operand);
  if (bf16_) {
    const auto round = bf16_code_ ? RoundToBf16Avx512 : SequentialRoundToBf16;
    round(w.s, rows * kBlockTokens, weights);
  }
  for (int32_t panel = 0; panel < layout_.num_panels(); ++panel) {
    const int32_t dim = panel * KvLayout::kPanelDims, width = layout_.PanelWidth(panel);
    const TileProduct product = {.a = w.s,
                                 .lda = kBlockTokens,
                                 .b = v_tile + layout_.VIndex(0, dim) * layout_.element_bytes(),
                                 .ldb = width,
                                 .depth = tokens,
                                 .width = width,
                                 .c = state.o + dim,
                                 .ldc = state.stride,
                                 .rows = rows,
                                 .add = true,
                                 .prefetch = PartOf(next_k, panel * word_rows, word_rows)};
    const Brgemm* ukernel =
        ukernels_used_ && rows > own_rows_ ? &ukernels_.Values(rows, tokens, width) : nullptr;
    if (bf16_) {
      MultiplyBf16(product, weights, ukernel, w);
    } else {
      Multiply(product, ukernel, width, w);
    }
  }
}

}  // namespace quire
