// Running the plan's items. Invariant: the sequence of f32 operations on a row (tiles ascending
// inside a chunk of 256 tokens, chunks folded left to right) depends on its positions alone; a tile
// or chunk that a row does not see leaves its state as it was, so skipping it changes nothing.
#include <algorithm>
#include <bit>
#include <limits>
#include <thread>

#include "runtime/kernels/attention_state.h"

namespace quire {
namespace {

void Clear(int32_t rows, const AttentionState& state) {
  std::fill_n(state.m, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(state.l, rows, 0.0f);
  std::fill_n(state.o, int64_t{rows} * state.stride, 0.0f);
}

// Shared items are handed out before all that wait for them, so some worker is at it.
void WaitFor(const std::atomic<int32_t>& value, int32_t wanted) {
  for (int32_t looks = 0; value.load(std::memory_order_acquire) != wanted; ++looks) {
    if (looks < 2000) {
      __builtin_ia32_pause();
    } else {
      std::this_thread::yield();  // its worker may have lost the processor
    }
  }
}

}  // namespace

AttentionState AttentionKernel::State::CarryAt(const AttentionItem& item) const {
  const int64_t rows = int64_t{max_carried} * tiling.group;
  const int64_t all = rows * layout.num_kv_heads;
  const int64_t first = item.kv_head * rows + int64_t{item.carry} * tiling.group;
  return {carried_states + first, carried_states + all + first,
          carried_states + 2 * all + first * stride, stride};
}

// What variants need to know of each query token.
void AttentionKernel::State::PrepareVariant(const AttentionItem& item, const LayerRun& run) const {
  ItemRows& rows = run.rows;
  const LayerAttention& layer = run.cls.layer;
  rows.range = {.sink_tokens = layer.sink_tokens};
  SequenceView view = step.View(layer, item.seq);
  for (int32_t token = 0; token < item.tokens; ++token) {
    int32_t position = item.visible - 1 + token;
    if (item.makes_carry) {
      const CarriedRow& carried = run.cls.plan->carried()[item.carry + token];
      position = carried.position;
      view = step.View(layer, carried.seq);
    }
    rows.position[token] = position;
    rows.view[token] = RowView::Make(layer, view, position);
    rows.range.Add(rows.view[token]);
  }
  if (item.makes_carry && rows.range.globals != nullptr) {  // differ from sequence to sequence
    rows.range.globals = nullptr;
    rows.range.lo = 0;
    rows.range.hi = rows.range.limit;
  }
  const int32_t head = item.kv_head * tiling.group + item.head_begin;
  rows.transform = {.cap = cap};
  if (!run.cls.bias) return;
  if (!slopes.empty()) rows.transform.slopes = slopes.data() + head;
  if (relative.empty()) return;
  rows.transform.relative = relative.data() + int64_t{head} * relative_stride;
  rows.transform.relative_begin = options.spec.relative.min_distance - kBlockTokens;
  rows.transform.relative_end = options.spec.relative.max_distance;
  rows.transform.relative_stride = relative_stride;
}

void AttentionKernel::State::Prepare(const AttentionItem& item, const LayerRun& run) const {
  const int64_t first = int64_t{item.kv_head * tiling.group + item.head_begin} * layout.head_dim;
  const int32_t width = item.head_count * layout.head_dim;
  for (int32_t token = 0; token < item.tokens; ++token) {
    const int32_t row =
        item.makes_carry ? run.cls.plan->carried()[item.carry + token].row : item.row_begin + token;
    run.rows.row[token] = row;
    tiles->scale(run.io.q + row * run.io.q_stride + first, width, q_factor,
                 run.scratch.products.q + int64_t{token} * width);
  }
  products.TakeQueries(item.rows(), run.scratch.products);
  if (!run.cls.plain || item.gaps) {
    PrepareVariant(item, run);
  } else {
    const int32_t end = item.visible + item.tokens - 1;
    run.rows.range = {.lo = 0, .hi = end, .limit = end};
  }
}

// Of a variant: how far into the tile any row sees, 0: not at all. Leaves each row's word in rows.
int32_t AttentionKernel::State::TokensSeen(const AttentionItem& item, int32_t tile,
                                           const LayerRun& run) const {
  uint64_t any = 0;
  for (int32_t token = 0; token < item.tokens; ++token) {
    run.rows.seen[token] = run.rows.view[token].Word(tile, run.cls.layer.sink_tokens);
    any |= run.rows.seen[token];
  }
  return 64 - std::countl_zero(any);
}

template <bool kPlain>
void AttentionKernel::State::RunTiles(const AttentionItem& item, int32_t chunk, const LayerRun& run,
                                      const AttentionState& state) const {
  const int32_t rows = item.rows();
  const TileRange& range = run.rows.range;
  const auto next_tile = [&](int32_t tile) { return kPlain ? tile : range.Next(tile); };
  Clear(rows, state);
  const BlockId* table = run.cls.block_ids + item.table_begin;
  const int32_t item_end = std::min(item.tile_end, item.chunk_end * kChunkTiles);
  const int32_t end = std::min(item_end, (chunk + 1) * kChunkTiles);
  const bool any_size = products.AnySize(rows);
  const int32_t word_bytes = layout.word_bytes();
  const int32_t v_bytes = std::min(layout.head_dim, KvLayout::kPanelDims) * word_bytes;
  int32_t next = 0;
  for (int32_t tile = next_tile(chunk * kChunkTiles); tile < end; tile = next) {
    next = next_tile(tile + 1);
    const int32_t seen = kPlain ? std::min(kBlockTokens, range.limit - tile * kBlockTokens)
                                : TokensSeen(item, tile, run);
    if (seen == 0) continue;
    const int32_t tokens = any_size ? RoundUp16(seen) : kBlockTokens;
    const std::byte* v_tile = run.kv.VTile(table[tile], item.kv_head);
    Prefetch next_k;
    if (next < item_end) {
      next_k = {.start = run.kv.KTile(table[next], item.kv_head),
                .rows = layout.head_dim / layout.pack,
                .row_bytes = std::min(kBlockTokens, range.limit - next * kBlockTokens) * word_bytes,
                .stride = kBlockTokens * word_bytes};
    }
    products.Scores(
        {rows, tokens}, run.scratch.products, run.kv.KTile(table[tile], item.kv_head),
        {.start = v_tile,
         .rows = layout.head_dim <= KvLayout::kPanelDims ? tokens / layout.pack
                                                         : layout.head_dim / layout.pack,
         .row_bytes = v_bytes,
         .stride = v_bytes});
    if constexpr (kPlain) {
      tiles->softmax({.s = run.scratch.products.s,
                      .rows = rows,
                      .visible = item.visible - tile * kBlockTokens,
                      .group = item.head_count},
                     state);
    } else {
      run.cls.variant({.s = run.scratch.products.s,
                       .tokens = item.tokens,
                       .group = item.head_count,
                       .seen = run.rows.seen,
                       .position = run.rows.position,
                       .tile_position = tile * kBlockTokens},
                      run.rows.transform, state);
    }
    products.AddValues({rows, tokens}, run.scratch.products, v_tile, next_k, state);
  }
}

void AttentionKernel::State::RunChunk(const AttentionItem& item, int32_t chunk, const LayerRun& run,
                                      const AttentionState& state) const {
  if (run.cls.plain && !item.gaps) {
    RunTiles<true>(item, chunk, run, state);
  } else {
    RunTiles<false>(item, chunk, run, state);
  }
}

// The state that an item's chunks are folded into: carried from a shared item, of the sinks alone,
// or, of those that start empty, uninitialised.
AttentionState AttentionKernel::State::Begin(const AttentionItem& item, const LayerRun& run) const {
  const int32_t rows = item.rows();
  const AttentionState state = item.carry >= 0 ? CarryAt(item) : StateAt(run.scratch.state, rows);
  if (item.carry >= 0 && !item.makes_carry) {
    WaitFor(carry_ready[item.shared].value, run.layer + 1);
    return state;
  }
  if (sinks.empty()) return state;
  Clear(rows, state);
  const float* sink = sinks.data() + int64_t{run.layer} * options.shape.num_heads +
                      item.kv_head * tiling.group + item.head_begin;
  for (int32_t row = 0; row < rows; ++row) {
    state.m[row] = sink[row % item.head_count];
    state.l[row] = state.m[row] == -std::numeric_limits<float>::infinity() ? 0.0f : 1.0f;
  }
  return state;
}

// All chunks are folded: the rows are done, or carried on by the items of their sequences.
void AttentionKernel::State::End(const AttentionItem& item, const LayerRun& run,
                                 const AttentionState& state) {
  if (item.makes_carry) {
    carry_ready[item.shared].value.store(run.layer + 1, std::memory_order_release);
    return;
  }
  const int32_t dim = layout.head_dim;
  const int32_t head = item.kv_head * tiling.group + item.head_begin;
  for (int32_t row = 0; row < item.rows(); ++row) {
    const int64_t token = run.rows.row[row / item.head_count];
    tiles->finish(
        row, dim, state,
        run.io.out + token * run.io.out_stride + int64_t{head + row % item.head_count} * dim);
  }
}

void AttentionKernel::State::RunWhole(const AttentionItem& item, const LayerRun& run) {
  const AttentionState state = Begin(item, run);
  const int32_t rows = item.rows();
  bool empty = StartsEmpty(item);
  const TileRange& range = run.rows.range;
  int32_t tile = range.Next(item.chunk_begin * kChunkTiles);
  while (tile < item.tile_end) {
    const int32_t chunk = tile / kChunkTiles;
    if (empty) {  // nothing to fold into, same bits
      RunChunk(item, chunk, run, state);
    } else {
      const AttentionState later = StateAt(run.scratch.chunk, rows);
      RunChunk(item, chunk, run, later);
      tiles->fold(rows, state, later);
    }
    empty = false;
    tile = range.Next((chunk + 1) * kChunkTiles);
  }
  if (empty) Clear(rows, state);
  End(item, run, state);
}

void AttentionKernel::State::RunPart(const AttentionItem& item, const LayerRun& run) {
  const AttentionSplit& split = run.cls.plan->splits()[item.split];
  const int32_t rows = item.rows();
  const int64_t floats = AttentionPlan::StateFloats(rows, stride);
  float* states = partial_states + split.first_state;
  RunChunk(item, item.chunk_begin, run, StateAt(states + item.part * floats, rows));
  std::atomic<int32_t>& done = chunks_done[item.split].value;
  if (done.fetch_add(1, std::memory_order_acq_rel) + 1 < split.chunks) return;
  done.store(0, std::memory_order_relaxed);  // for the next layer, which starts after a barrier
  const AttentionState state = Begin(item, run);
  if (StartsEmpty(item)) Clear(rows, state);
  for (int32_t part = 0; part < split.chunks; ++part)
    tiles->fold(rows, state, StateAt(states + part * floats, rows));
  End(item, run, state);
}

void AttentionKernel::State::RunItem(const AttentionItem& item, const LayerRun& run) {
  Prepare(item, run);
  if (item.split < 0) {
    RunWhole(item, run);
  } else {
    RunPart(item, run);
  }
}

}  // namespace quire
