// Attention on one thread: time per tile of 64 tokens and KV head, for decode and prefill row
// counts, with KV in the caches (hot) and streamed from a pool far larger than them. Also appending
// and whole decode steps.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/log/check.h"
#include "benchmark/benchmark.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/attention_tiles.h"
#include "runtime/kernels/kv_append.h"
#include "runtime/kv_cache/kv_pool.h"

namespace quire {
namespace {

constexpr AttentionShape kSmolLm2 = {
    .num_heads = 9, .num_kv_heads = 3, .head_dim = 64, .scale = 0.125f};

struct Bench {
  KvPool pool;
  std::unique_ptr<AttentionKernel> kernel;
  std::vector<SeqSpan> seqs;
  std::vector<BlockId> blocks;
  std::vector<float> q, out;
  AttentionShape shape;
  int32_t num_layers;

  // `num_seqs` sequences of `context` tokens, `rows` of them new.
  Bench(const AttentionOptions& base, int32_t num_seqs, int32_t context, int32_t rows)
      : shape(base.shape), num_layers(base.num_layers) {
    const int32_t per_seq = BlocksFor(context);
    pool = KvPool::Create(KvLayout::Make(base.kv_dtype, shape.num_kv_heads, shape.head_dim),
                          base.num_layers, num_seqs * per_seq)
               .value();
    // Plausible values in both types.
    for (int32_t layer = 0; layer < base.num_layers; ++layer) {
      uint16_t* halves = reinterpret_cast<uint16_t*>(pool.Layer(layer).data);
      for (size_t i = 0; i < pool.layout().block_bytes() * num_seqs * per_seq / 2; ++i)
        halves[i] = static_cast<uint16_t>(0x3c00 + (i * 2654435761u >> 20) % 512);
    }
    for (int32_t i = 0; i < num_seqs; ++i) {
      seqs.push_back({.row_begin = i * rows,
                      .row_count = rows,
                      .kv_len = context,
                      .table_begin = i * per_seq,
                      .logits_begin = 0,
                      .logits_count = 0});
    }
    for (int32_t i = 0; i < num_seqs * per_seq; ++i) blocks.push_back(BlockId{i});
    AttentionOptions options = base;
    options.max_rows = num_seqs * rows;
    options.max_seqs = num_seqs;
    options.context_tokens = context;
    kernel = AttentionKernel::Create(options).value();
    q.assign(static_cast<size_t>(num_seqs) * rows * shape.num_heads * shape.head_dim, 0.01f);
    out.resize(q.size());
  }

  void Step() {
    StepBatch batch;
    batch.seqs = seqs;
    batch.block_ids = blocks;
    kernel->Plan(batch);
    const int64_t width = int64_t{shape.num_heads} * shape.head_dim;
    for (int32_t layer = 0; layer < num_layers; ++layer) {
      kernel->Run(0, layer, pool.Layer(layer),
                  {.q = q.data(), .q_stride = width, .out = out.data(), .out_stride = width});
    }
  }
};

// Arguments: rows per KV head (group 3: tokens * 3, or one query of `group` heads), streamed,
// products, arithmetic (1 f32, 2 bf16).
void BM_Tile(benchmark::State& state) {
  const int32_t rows = static_cast<int32_t>(state.range(0));
  const bool streamed = state.range(1) != 0;
  AttentionOptions options;
  options.products = static_cast<AttentionProducts>(state.range(2));
  options.kv_dtype = static_cast<KvDType>(state.range(3));
  options.arithmetic = static_cast<AttentionArithmetic>(state.range(4));
  options.shape = {.num_heads = rows, .num_kv_heads = 1, .head_dim = 64, .scale = 0.125f};
  const int32_t context = 256, seqs = streamed ? 2048 : 1;
  Bench bench(options, seqs, context, 1);
  for (auto _ : state) bench.Step();
  const double tiles = static_cast<double>(state.iterations()) * seqs * (context / 64);
  state.counters["per_tile"] =
      benchmark::Counter(tiles, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["GFLOPs"] =
      benchmark::Counter(tiles * 4.0 * rows * 64 * 64 * 1e-9, benchmark::Counter::kIsRate);
  state.counters["KV_GBps"] =
      benchmark::Counter(tiles * static_cast<double>(bench.pool.layout().block_bytes()) * 1e-9,
                         benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Tile)
    ->ArgNames({"rows", "streamed", "products", "dtype", "arithmetic"})
    ->ArgsProduct({{1, 3, 6, 8, 12, 16, 24, 48}, {0}, {0, 1}, {1}, {1, 2}})
    ->ArgsProduct({{1, 3, 8}, {1}, {0, 1}, {1}, {1, 2}})
    ->ArgsProduct({{1, 3, 6, 8, 12, 16, 24, 48}, {0}, {0}, {2, 3}, {1}})
    ->ArgsProduct({{1, 3, 8}, {1}, {0}, {2, 3}, {1}})
    ->ArgsProduct({{3, 12, 48}, {0}, {0, 1}, {0}, {1}});

// The parts of a tile besides the products: softmax of `rows` rows, widening one bf16 tile.
void BM_Softmax(benchmark::State& state) {
  const int32_t rows = static_cast<int32_t>(state.range(0));
  const AttentionTiles& tiles = AttentionTilesFor(ActiveIsa());
  std::vector<float> s(rows * 64), m(rows), l(rows), o(rows * 64);
  for (auto _ : state) {
    for (size_t i = 0; i < s.size(); i += 16) s[i] = 1.0f;
    tiles.softmax({.s = s.data(), .rows = rows, .visible = 64, .group = 3},
                  {m.data(), l.data(), o.data(), 64});
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_Softmax)->Arg(3)->Arg(48);

void BM_Widen(benchmark::State& state) {
  const std::vector<uint16_t> tile(64 * 64, 0x3f80);
  std::vector<float> wide(64 * 64);
  for (auto _ : state) {
    AttentionTilesFor(ActiveIsa())
        .widen(reinterpret_cast<const std::byte*>(tile.data()), 64, 64, 64, wide.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_Widen);

// One layer of a decode step of SmolLM2 on one thread.
void BM_DecodeLayer(benchmark::State& state) {
  AttentionOptions options;
  options.kv_dtype = static_cast<KvDType>(state.range(2));
  options.arithmetic = static_cast<AttentionArithmetic>(state.range(3));
  options.shape = kSmolLm2;
  Bench bench(options, static_cast<int32_t>(state.range(0)), static_cast<int32_t>(state.range(1)),
              1);
  for (auto _ : state) bench.Step();
  state.counters["KV_GBps"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * bench.kernel->planned_kv_bytes() * 1e-9,
      benchmark::Counter::kIsRate);
}
BENCHMARK(BM_DecodeLayer)
    ->ArgNames({"batch", "context", "dtype", "arithmetic"})
    ->ArgsProduct({{1, 8, 32}, {64, 192, 512, 4096}, {1}, {1, 2}})
    ->ArgsProduct({{1, 8, 32}, {64, 192, 512, 4096}, {2, 3}, {1}})
    ->Unit(benchmark::kMicrosecond);

// One layer of a prefill chunk of SmolLM2 on one thread, `rows` tokens that end at `context`.
void BM_PrefillLayer(benchmark::State& state) {
  AttentionOptions options;
  options.kv_dtype = static_cast<KvDType>(state.range(2));
  options.arithmetic = static_cast<AttentionArithmetic>(state.range(3));
  options.shape = kSmolLm2;
  Bench bench(options, 1, static_cast<int32_t>(state.range(1)),
              static_cast<int32_t>(state.range(0)));
  for (auto _ : state) bench.Step();
  state.counters["GFLOPs"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * bench.kernel->planned_macs() * 2e-9,
      benchmark::Counter::kIsRate);
}
BENCHMARK(BM_PrefillLayer)
    ->ArgNames({"rows", "context", "dtype", "arithmetic"})
    ->ArgsProduct({{64}, {64, 192, 512, 4096}, {1}, {1, 2}})
    ->ArgsProduct({{64}, {64, 192, 512, 4096}, {2, 3}, {1}})
    ->ArgsProduct({{512}, {512}, {2, 3}, {1}})
    ->ArgsProduct({{512}, {512}, {1}, {1, 2}})
    ->Unit(benchmark::kMicrosecond);

// Appending K and V of one layer, per row.
void BM_Append(benchmark::State& state) {
  const int32_t rows = static_cast<int32_t>(state.range(0));
  const KvPool pool =
      KvPool::Create(KvLayout::Make(static_cast<KvDType>(state.range(1)), 3, 64), 1, 8).value();
  std::vector<KvSlot> slots;
  for (int32_t i = 0; i < rows; ++i) slots.push_back(KvSlot{i + (rows == 1)});
  const std::vector<float> k(rows * 192, 0.5f), v(rows * 192, 0.25f);
  for (auto _ : state) {
    AppendKv(pool.Layer(0), {.slots = slots, .k = k.data(), .v = v.data(), .stride = 192},
             {.row_begin = 0, .row_end = rows, .head_begin = 0, .head_end = 3});
  }
  state.counters["per_row"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * rows,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_Append)->ArgNames({"rows", "dtype"})->ArgsProduct({{1, 128}, {0, 1}});

// 32 sequences whose first 1024 tokens are the same and 64 more their own, with these 1024 in the
// same blocks, or each in its own. So many layers of SmolLM2 that no cache holds their KV; per
// layer.
void BM_SharedPrefix(benchmark::State& state) {
  AttentionOptions options;
  options.shape = kSmolLm2;
  options.num_layers = 16;
  options.cascade = state.range(1) != 0;
  constexpr int32_t kShared = 1024 / kBlockTokens, kContext = 1088;
  Bench bench(options, 32, kContext, 1);
  if (state.range(0) != 0) {
    for (size_t i = 0; i < bench.blocks.size(); ++i) {
      if (i % BlocksFor(kContext) < kShared)
        bench.blocks[i] = bench.blocks[i % BlocksFor(kContext)];
    }
  }
  for (auto _ : state) bench.Step();
  state.counters["layer_us"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * options.num_layers * 1e-6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["KV_MB"] = static_cast<double>(bench.kernel->planned_kv_bytes()) * 1e-6;
}
BENCHMARK(BM_SharedPrefix)
    ->ArgNames({"same_blocks", "cascade"})
    ->Args({0, 1})
    ->Args({1, 0})
    ->Args({1, 1})
    ->Unit(benchmark::kMicrosecond);

// One layer of SmolLM2 beside other specs: 0 plain, 1 a window of 256, 2 the general mask that
// shows all, 3 ALiBi, 4 relative bias, 5 soft-cap. Eight decoding rows or a prefill of 128 at 1024
// tokens.
void BM_VariantLayer(benchmark::State& state) {
  AttentionOptions options;
  options.shape = kSmolLm2;
  options.spec.layers.resize(1);
  const int64_t variant = state.range(0);
  if (variant == 1) options.spec.layers[0].window = 256;
  if (variant == 2) options.spec.layers[0].window = 1 << 20;
  if (variant == 3) options.spec.alibi_slopes.assign(kSmolLm2.num_heads, 0.01f);
  if (variant == 4) {
    options.spec.relative = {.min_distance = -128, .max_distance = 0, .values = {}};
    options.spec.relative.values.assign(kSmolLm2.num_heads * 129, 0.1f);
  }
  if (variant == 5) options.spec.logit_cap = 50;
  const bool prefill = state.range(1) != 0;
  Bench bench(options, prefill ? 1 : 8, 1024, prefill ? 128 : 1);
  for (auto _ : state) bench.Step();
}
BENCHMARK(BM_VariantLayer)
    ->ArgNames({"variant", "prefill"})
    ->ArgsProduct({{0, 1, 2, 3, 4, 5}, {0, 1}})
    ->Unit(benchmark::kMicrosecond);

// The plan of a step, per step.
void BM_Plan(benchmark::State& state) {
  AttentionOptions options;
  options.shape = kSmolLm2;
  options.workers = 2;
  Bench bench(options, static_cast<int32_t>(state.range(0)), static_cast<int32_t>(state.range(1)),
              1);
  StepBatch batch;
  batch.seqs = bench.seqs;
  batch.block_ids = bench.blocks;
  for (auto _ : state) bench.kernel->Plan(batch);
}
BENCHMARK(BM_Plan)
    ->ArgNames({"batch", "context"})
    ->ArgsProduct({{1, 32}, {192, 1024}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace quire
