// Who owns what: State owns everything; a worker writes only its own scratch, the output rows of
// its items and the partial states of its chunks. Invariant: the sequence of f32 operations on a
// row (tiles ascending inside a chunk of 256 tokens, chunks folded left to right) depends on its
// positions alone.
#include "runtime/kernels/attention.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/log/check.h"
#include "absl/log/log.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/kernels/attention_plan.h"
#include "runtime/kernels/attention_tiles.h"
#include "runtime/kernels/attention_ukernels.h"
#include "runtime/tensor/arena.h"

namespace quire {
namespace {

constexpr double kLog2E = 1.4426950408889634;

int32_t RoundUp16(int32_t n) { return (n + 15) / 16 * 16; }

// Up to this many rows the own tile beats widening and a ukernel
// (tests/bench/kernels_attention_bench.cc).
int32_t OwnTileRows(IsaLevel isa) {
  return isa >= IsaLevel::kAvx512 ? 12 : isa >= IsaLevel::kAvx2 ? 6 : 0;
}

struct alignas(128) Counter {
  std::atomic<int32_t> value{0};
};

// What one product works on: the first `tokens` of a tile, for `rows` rows.
struct TileSize {
  int32_t rows, tokens;
};

struct Scratch {
  float* q;   // [rows][head_dim], scaled
  float* s;   // [rows][64]
  float* kv;  // one widened tile
  float* state;
  float* chunk;
  std::byte* ukernel;
};

}  // namespace

struct AttentionKernel::State {
  AttentionOptions options;
  QueryTiling tiling;
  KvLayout layout;
  const AttentionTiles* tiles = nullptr;
  int32_t own_rows = 0;     // up to so many rows the own tile serves, bf16 only
  bool sequential = false;  // no ukernels
  int32_t stride = 0;       // of rows of o
  float q_factor = 0;       // scale * log2(e)
  AttentionUkernels ukernels;
  std::unique_ptr<AttentionPlan> plan;
  Arena arena;
  std::vector<Scratch> scratch;  // [workers]
  float* partial_states = nullptr;
  std::unique_ptr<Counter[]> next_item;    // [num_layers]
  std::unique_ptr<Counter[]> chunks_done;  // [max_splits]
  const BlockId* block_ids = nullptr;
  int64_t macs = 0, kv_bytes = 0;

  void ChooseProducts();
  absl::Status TakeScratch();
  AttentionState StateAt(float* base, int32_t rows) const {
    return {base, base + RoundUp16(rows), base + 2 * RoundUp16(rows), stride};
  }
  void RunItem(const AttentionItem& item, const Scratch& scratch, const KvLayerView& kv,
               const AttentionIo& io);
  void RunChunk(const AttentionItem& item, int32_t chunk, const Scratch& scratch,
                const KvLayerView& kv, const AttentionState& state) const;
  void Scores(TileSize size, const Scratch& scratch, const std::byte* k_tile,
              const Prefetch& next) const;
  void AddValues(TileSize size, const Scratch& scratch, const std::byte* v_tile,
                 const Prefetch& next_k, const AttentionState& state) const;
  const float* Widened(const std::byte* tile, int32_t depth, int32_t width, int32_t columns,
                       float* buffer) const;
  void WriteOut(const AttentionItem& item, const AttentionState& state,
                const AttentionIo& io) const;
};

// Own tile for few rows, ukernels for the rest. Where these cannot be generated, or would not give
// the own tile's bits, the own tile serves all it can.
void AttentionKernel::State::ChooseProducts() {
  const bool own_possible =
      options.isa >= IsaLevel::kAvx2 && layout.dtype == KvDType::kBF16 && layout.head_dim % 16 == 0;
  if (options.products == AttentionProducts::kFastest && own_possible)
    own_rows = OwnTileRows(options.isa);
  sequential =
      options.products == AttentionProducts::kSequential || options.isa == IsaLevel::kScalar;
  if (sequential) return;
  const absl::Status status = ukernels.Generate(layout, tiling, own_rows, stride);
  if (!status.ok()) {
    sequential = true;
  } else if (ukernels.EqualSequentialFma()) {
    return;
  }
  if (own_possible) own_rows = kQueryTileRows;
  LOG(WARNING) << "attention without oneDNN ukernels: "
               << (status.ok() ? "their results depend on the number of rows" : status.ToString());
}

absl::Status AttentionKernel::State::TakeScratch() {
  const int32_t rows = tiling.max_rows(), dim = layout.head_dim;
  const size_t q = Arena::Align(sizeof(float) * rows * dim);
  const size_t s = Arena::Align(sizeof(float) * rows * kBlockTokens);
  const size_t kv = Arena::Align(sizeof(float) * layout.tile_elements());
  const size_t state = Arena::Align(sizeof(float) * AttentionPlan::StateFloats(rows, stride));
  const size_t ukernel = Arena::Align(ukernels.scratch_bytes());
  // No line shared by two workers.
  const size_t per_worker = q + s + kv + 2 * state + ukernel + 128;
  const size_t partial = Arena::Align(sizeof(float) * plan->max_state_floats());
  ASSIGN_OR_RETURN(arena, Arena::Create(per_worker * options.workers + partial));
  arena.Touch();
  const auto floats = [&](size_t bytes) {
    return reinterpret_cast<float*>(arena.Take(bytes).data());
  };
  for (int32_t worker = 0; worker < options.workers; ++worker) {
    Scratch w;
    w.q = floats(q);
    w.s = floats(s);
    w.kv = floats(kv);
    w.state = floats(state);
    w.chunk = floats(state);
    w.ukernel = arena.Take(ukernel + 128).data();
    scratch.push_back(w);
  }
  partial_states = floats(partial);
  return absl::OkStatus();
}

// The B operand in f32: the tile itself, or widened into `buffer`.
const float* AttentionKernel::State::Widened(const std::byte* tile, int32_t depth, int32_t width,
                                             int32_t columns, float* buffer) const {
  if (layout.dtype == KvDType::kF32) return reinterpret_cast<const float*>(tile);
  tiles->widen(tile, depth, width, columns, buffer);
  return buffer;
}

void AttentionKernel::State::Scores(TileSize size, const Scratch& w, const std::byte* k_tile,
                                    const Prefetch& next) const {
  const int32_t rows = size.rows, tokens = size.tokens;
  const int32_t dim = layout.head_dim;
  TileProduct product = {.a = w.q,
                         .lda = dim,
                         .b = k_tile,
                         .ldb = kBlockTokens,
                         .depth = dim,
                         .width = tokens,
                         .c = w.s,
                         .ldc = kBlockTokens,
                         .rows = rows,
                         .add = false,
                         .prefetch = next};
  if (rows <= own_rows) {
    tiles->product(product);
    return;
  }
  const float* b = Widened(k_tile, dim, kBlockTokens, tokens, w.kv);
  if (sequential) {
    product.b = reinterpret_cast<const std::byte*>(b);
    SequentialProduct(product);
  } else {
    ukernels.Scores(rows, tokens).Run(w.q, b, w.s, w.ukernel);
  }
}

void AttentionKernel::State::AddValues(TileSize size, const Scratch& w, const std::byte* v_tile,
                                       const Prefetch& next_k, const AttentionState& state) const {
  const int32_t rows = size.rows, tokens = size.tokens;
  const int32_t word_rows = KvLayout::kPanelDims / layout.pack;  // of K, that go with a panel of V
  for (int32_t panel = 0; panel < layout.num_panels(); ++panel) {
    const int32_t dim = panel * KvLayout::kPanelDims, width = layout.PanelWidth(panel);
    const size_t offset = layout.VIndex(0, dim) * layout.element_bytes();
    TileProduct product = {.a = w.s,
                           .lda = kBlockTokens,
                           .b = v_tile + offset,
                           .ldb = width,
                           .depth = tokens,
                           .width = width,
                           .c = state.o + dim,
                           .ldc = stride,
                           .rows = rows,
                           .add = true,
                           .prefetch = {}};
    if (rows <= own_rows) {
      const int32_t row = panel * word_rows;
      product.prefetch = {.start = next_k.start + int64_t{row} * next_k.stride,
                          .rows = std::min(word_rows, next_k.rows - row),
                          .row_bytes = next_k.row_bytes,
                          .stride = next_k.stride};
      tiles->product(product);
      continue;
    }
    const float* b = Widened(product.b, tokens, width, width, w.kv);
    if (sequential) {
      product.b = reinterpret_cast<const std::byte*>(b);
      SequentialProduct(product);
    } else {
      ukernels.Values(rows, tokens, width).Run(w.s, b, product.c, w.ukernel);
    }
  }
}

void AttentionKernel::State::RunChunk(const AttentionItem& item, int32_t chunk, const Scratch& w,
                                      const KvLayerView& kv, const AttentionState& state) const {
  const int32_t rows = item.rows();
  std::fill_n(state.m, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(state.l, rows, 0.0f);
  std::fill_n(state.o, int64_t{rows} * stride, 0.0f);
  const BlockId* table = block_ids + item.table_begin;
  const int32_t tiles_in_item = std::min(item.tiles(), item.chunk_end * kChunkTiles);
  const int32_t end = std::min(tiles_in_item, (chunk + 1) * kChunkTiles);
  const bool any_size = rows <= own_rows || sequential || ukernels.HasShortTiles(rows);
  const int32_t v_words = std::min(layout.head_dim, KvLayout::kPanelDims);
  for (int32_t tile = chunk * kChunkTiles; tile < end; ++tile) {
    const int32_t visible = item.visible - tile * kBlockTokens;
    const int32_t seen = visible + item.tokens - 1;  // by the last query token
    const int32_t tokens = any_size ? std::min(kBlockTokens, RoundUp16(seen)) : kBlockTokens;
    const std::byte* v_tile = kv.VTile(table[tile], item.kv_head);
    Prefetch next_k;
    if (tile + 1 < tiles_in_item) {
      next_k = {.start = kv.KTile(table[tile + 1], item.kv_head),
                .rows = layout.head_dim / layout.pack,
                .row_bytes = std::min(kBlockTokens, seen - kBlockTokens) * 4,
                .stride = kBlockTokens * 4};
    }
    Scores({rows, tokens}, w, kv.KTile(table[tile], item.kv_head),
           {.start = v_tile,
            .rows = layout.head_dim <= KvLayout::kPanelDims ? tokens / layout.pack
                                                            : layout.head_dim / layout.pack,
            .row_bytes = v_words * 4,
            .stride = v_words * 4});
    tiles->softmax({.s = w.s, .rows = rows, .visible = visible, .group = item.head_count}, state);
    AddValues({rows, tokens}, w, v_tile, next_k, state);
  }
}

void AttentionKernel::State::WriteOut(const AttentionItem& item, const AttentionState& state,
                                      const AttentionIo& io) const {
  const int32_t dim = layout.head_dim;
  const int32_t head = item.kv_head * tiling.group + item.head_begin;
  for (int32_t row = 0; row < item.rows(); ++row) {
    const int64_t token = item.row_begin + row / item.head_count;
    tiles->finish(row, dim, state,
                  io.out + token * io.out_stride + int64_t{head + row % item.head_count} * dim);
  }
}

void AttentionKernel::State::RunItem(const AttentionItem& item, const Scratch& w,
                                     const KvLayerView& kv, const AttentionIo& io) {
  const int32_t dim = layout.head_dim, rows = item.rows();
  const int64_t head = item.kv_head * tiling.group + item.head_begin;
  for (int32_t token = 0; token < item.tokens; ++token) {
    tiles->scale(io.q + (item.row_begin + token) * io.q_stride + head * dim, item.head_count * dim,
                 q_factor, w.q + int64_t{token} * item.head_count * dim);
  }
  if (item.split < 0) {
    const AttentionState state = StateAt(w.state, rows), later = StateAt(w.chunk, rows);
    for (int32_t chunk = 0; chunk < item.chunk_end; ++chunk) {
      RunChunk(item, chunk, w, kv, chunk == 0 ? state : later);
      if (chunk > 0) tiles->fold(rows, state, later);
    }
    WriteOut(item, state, io);
    return;
  }
  const AttentionSplit& split = plan->splits()[item.split];
  const int64_t floats = AttentionPlan::StateFloats(rows, stride);
  float* states = partial_states + split.first_state;
  RunChunk(item, item.chunk_begin, w, kv, StateAt(states + item.chunk_begin * floats, rows));
  std::atomic<int32_t>& done = chunks_done[item.split].value;
  if (done.fetch_add(1, std::memory_order_acq_rel) + 1 < split.chunks) return;
  done.store(0, std::memory_order_relaxed);  // for the next layer, which starts after a barrier
  const AttentionState state = StateAt(states, rows);
  for (int32_t chunk = 1; chunk < split.chunks; ++chunk)
    tiles->fold(rows, state, StateAt(states + chunk * floats, rows));
  WriteOut(item, state, io);
}

AttentionKernel::AttentionKernel(std::unique_ptr<State> state) : state_(std::move(state)) {}
AttentionKernel::~AttentionKernel() = default;

absl::StatusOr<std::unique_ptr<AttentionKernel>> AttentionKernel::Create(
    const AttentionOptions& options) {
  const AttentionShape& shape = options.shape;
  if (shape.num_kv_heads < 1 || shape.num_heads < 1 || shape.num_heads % shape.num_kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("attention: ", shape.num_heads,
                                                   " query heads over ", shape.num_kv_heads,
                                                   " key/value heads, wanted a multiple"));
  }
  if (shape.head_dim < 2 || shape.head_dim > 256 || shape.head_dim % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("attention: head dimension ", shape.head_dim,
                                                   ", wanted an even number up to 256"));
  }
  CHECK(options.workers > 0 && options.num_layers > 0 && options.max_rows > 0 &&
        options.max_seqs > 0);
  auto state = std::make_unique<State>();
  state->options = options;
  state->tiling = QueryTiling::Make(shape.num_heads / shape.num_kv_heads);
  state->layout = KvLayout::Make(options.kv_dtype, shape.num_kv_heads, shape.head_dim);
  state->tiles = &AttentionTilesFor(options.isa);
  state->stride = RoundUp16(shape.head_dim);
  state->q_factor = static_cast<float>(shape.scale * kLog2E);
  state->ChooseProducts();
  state->plan = std::make_unique<AttentionPlan>(
      AttentionPlanOptions{.tiling = state->tiling,
                           .num_kv_heads = shape.num_kv_heads,
                           .workers = options.workers,
                           .max_rows = options.max_rows,
                           .max_seqs = options.max_seqs,
                           .context_tokens = options.context_tokens,
                           .state_stride = state->stride,
                           .split_long_items = options.split_long_items});
  state->next_item = std::make_unique<Counter[]>(options.num_layers);
  state->chunks_done = std::make_unique<Counter[]>(state->plan->max_splits());
  RETURN_IF_ERROR(state->TakeScratch());
  return std::unique_ptr<AttentionKernel>(new AttentionKernel(std::move(state)));
}

void AttentionKernel::Plan(const StepBatch& batch) {
  State& s = *state_;
  s.block_ids = batch.block_ids.data();
  s.plan->Build(batch.seqs);
  for (int32_t layer = 0; layer < s.options.num_layers; ++layer)
    s.next_item[layer].value.store(0, std::memory_order_relaxed);
  s.macs = s.kv_bytes = 0;
  for (const SeqSpan& seq : batch.seqs) {
    const int64_t visible =
        int64_t{seq.row_count} * (2 * int64_t{seq.kv_len} - seq.row_count + 1) / 2;
    s.macs += 2 * visible * s.options.shape.num_heads * s.options.shape.head_dim;
    s.kv_bytes += BlocksFor(seq.kv_len) * static_cast<int64_t>(s.layout.block_bytes());
  }
}

void AttentionKernel::Run(int32_t worker, int32_t layer, const KvLayerView& kv,
                          const AttentionIo& io) {
  State& s = *state_;
  const std::span<const AttentionItem> items = s.plan->items();
  std::atomic<int32_t>& next = s.next_item[layer].value;
  for (;;) {
    const int32_t index = next.fetch_add(1, std::memory_order_relaxed);
    if (index >= static_cast<int32_t>(items.size())) return;
    s.RunItem(items[index], s.scratch[worker], kv, io);
  }
}

int64_t AttentionKernel::scratch_bytes() const {
  return static_cast<int64_t>(state_->arena.size());
}
int64_t AttentionKernel::planned_macs() const { return state_->macs; }
int64_t AttentionKernel::planned_kv_bytes() const { return state_->kv_bytes; }
bool AttentionKernel::uses_ukernels() const { return !state_->sequential; }

}  // namespace quire
