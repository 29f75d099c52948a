// Inside of AttentionKernel, for its own sources: attention.cc creates it,
// attention_items.cc runs the plan's items. State owns everything; a worker writes only its own
// scratch, the output rows of its items, the partial states of its chunks and the carried states of
// its shared items.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/kernels/attention.h"
#include "runtime/kernels/attention_cascade.h"
#include "runtime/kernels/attention_plan.h"
#include "runtime/kernels/attention_products.h"
#include "runtime/kernels/attention_tiles.h"
#include "runtime/kernels/attention_variants.h"
#include "runtime/tensor/arena.h"

namespace quire {

constexpr int32_t RoundUp16(int32_t n) { return (n + 15) / 16 * 16; }

struct alignas(128) Counter {
  std::atomic<int32_t> value{0};
};

struct Scratch {
  ProductScratch products;
  float* state;
  float* chunk;
};

// The rows of the item at hand.
struct alignas(128) ItemRows {
  int32_t row[kQueryTileRows];  // [tokens] of the step
  // The rest is for variants alone.
  int32_t position[kQueryTileRows];  // [tokens]
  uint64_t seen[kQueryTileRows];     // [tokens] of the tile at hand
  RowView view[kQueryTileRows];      // [tokens]
  TileRange range;
  ScoreTransform transform;
};

// Layers that see the same and are planned together.
struct LayerClass {
  LayerAttention layer;
  VariantSoftmax variant = nullptr;
  bool plain = true;  // causal, nothing but the mask on the scores
  bool bias = false;
  std::unique_ptr<AttentionPlan> plan;
  const BlockId* block_ids = nullptr;
};

// One layer of one step, as a worker runs it.
struct LayerRun {
  int32_t layer;
  const LayerClass& cls;
  const KvLayerView& kv;
  const AttentionIo& io;
  const Scratch& scratch;
  ItemRows& rows;
};

struct AttentionKernel::State {
  AttentionOptions options;
  QueryTiling tiling;
  KvLayout layout;
  const AttentionTiles* tiles = nullptr;
  int32_t stride = 0;  // of rows of o
  float q_factor = 0;  // scale * log2(e)
  TileProducts products;
  std::vector<LayerClass> classes;
  std::vector<int32_t> class_of;              // [num_layers]
  std::unique_ptr<AttentionCascade> cascade;  // null: off
  // Of the spec, in units of log2: cap, [num_layers][num_heads] sinks, [num_heads] slopes and
  // relative biases, the latter with their ends repeated 64 times.
  float cap = 0;
  std::vector<float> sinks, slopes, relative;
  int32_t relative_stride = 0;
  Arena arena;
  std::vector<Scratch> scratch;               // [workers]
  std::unique_ptr<ItemRows[]> rows_of_items;  // [workers]
  float* partial_states = nullptr;
  float* carried_states = nullptr;  // m, l, o of [kv_heads][max_carried * group] rows
  int32_t max_carried = 0;
  std::unique_ptr<Counter[]> next_item;    // [num_layers]
  std::unique_ptr<Counter[]> chunks_done;  // [max_splits]
  std::unique_ptr<Counter[]> carry_ready;  // [max_shared] the last layer it was made for, plus 1
  AttentionStep step;
  int64_t macs = 0, kv_bytes = 0;

  void TakeSpec();
  void MakePlans();
  absl::Status TakeScratch();
  AttentionState StateAt(float* base, int32_t rows) const {
    return {base, base + RoundUp16(rows), base + 2 * RoundUp16(rows), stride};
  }
  // No state before its first chunk: nothing carried, no sinks.
  bool StartsEmpty(const AttentionItem& item) const {
    return sinks.empty() && (item.carry < 0 || item.makes_carry);
  }
  AttentionState CarryAt(const AttentionItem& item) const;
  void RunItem(const AttentionItem& item, const LayerRun& run);
  void RunWhole(const AttentionItem& item, const LayerRun& run);
  void RunPart(const AttentionItem& item, const LayerRun& run);
  void Prepare(const AttentionItem& item, const LayerRun& run) const;
  void PrepareVariant(const AttentionItem& item, const LayerRun& run) const;
  AttentionState Begin(const AttentionItem& item, const LayerRun& run) const;
  void End(const AttentionItem& item, const LayerRun& run, const AttentionState& state);
  void RunChunk(const AttentionItem& item, int32_t chunk, const LayerRun& run,
                const AttentionState& state) const;
  int32_t TokensSeen(const AttentionItem& item, int32_t tile, const LayerRun& run) const;
  template <bool kPlain>
  void RunTiles(const AttentionItem& item, int32_t chunk, const LayerRun& run,
                const AttentionState& state) const;
};

}  // namespace quire
