// Creation, and the plan of a step; attention_items.cc does the rest.
#include "runtime/kernels/attention.h"

#include <algorithm>

#include "absl/log/check.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/kernels/attention_state.h"

namespace quire {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr int64_t kMaxCarriedFloats = int64_t{4} << 20;  // 16 MiB of carried states

}  // namespace

absl::Status AttentionKernel::State::TakeScratch() {
  const ProductScratchSizes sizes = products.scratch_sizes();
  const size_t state =
      Arena::Align(sizeof(float) * AttentionPlan::StateFloats(tiling.max_rows(), stride));
  size_t per_worker = 2 * state + 128;  // no line shared by two workers
  for (size_t bytes : {sizes.q, sizes.s, sizes.q_operand, sizes.p_operand, sizes.kv, sizes.ukernel})
    per_worker += Arena::Align(bytes);
  int64_t partial_floats = 0;
  for (const LayerClass& cls : classes)
    partial_floats = std::max(partial_floats, cls.plan->max_state_floats());
  const size_t partial = Arena::Align(sizeof(float) * partial_floats);
  const size_t carried =
      Arena::Align(sizeof(float) * max_carried * options.shape.num_heads * (stride + 2));
  ASSIGN_OR_RETURN(arena, Arena::Create(per_worker * options.workers + partial + carried));
  arena.Touch();
  const auto bytes = [&](size_t count) { return arena.Take(Arena::Align(count)).data(); };
  const auto floats = [&](size_t count) { return reinterpret_cast<float*>(bytes(count)); };
  for (int32_t worker = 0; worker < options.workers; ++worker) {
    Scratch w;
    w.products.q = floats(sizes.q);
    w.products.s = floats(sizes.s);
    w.products.q_operand = bytes(sizes.q_operand);
    w.products.p_operand = bytes(sizes.p_operand);
    w.products.kv = bytes(sizes.kv);
    w.state = floats(state);
    w.chunk = floats(state);
    w.products.ukernel = bytes(Arena::Align(sizes.ukernel) + 128);
    scratch.push_back(w);
  }
  partial_states = floats(partial);
  carried_states = floats(carried);
  rows_of_items = std::make_unique<ItemRows[]>(options.workers);
  return absl::OkStatus();
}

// The spec in units of log2, and its layers sorted into classes.
void AttentionKernel::State::TakeSpec() {
  const AttentionSpec& spec = options.spec;
  const auto scaled = [](const std::vector<float>& values) {
    std::vector<float> result(values.size());
    for (size_t i = 0; i < values.size(); ++i) result[i] = static_cast<float>(values[i] * kLog2E);
    return result;
  };
  q_factor = static_cast<float>(options.shape.scale *
                                (spec.logit_cap > 0 ? 1.0 / spec.logit_cap : kLog2E));
  cap = static_cast<float>(spec.logit_cap * kLog2E);
  sinks = scaled(spec.sinks);
  slopes = scaled(spec.alibi_slopes);
  if (const std::vector<float> biases = scaled(spec.relative.values); !biases.empty()) {
    const int32_t count = spec.relative.max_distance - spec.relative.min_distance + 1;
    relative_stride = count + 2 * kBlockTokens;
    for (auto row = biases.begin(); row != biases.end(); row += count) {
      relative.insert(relative.end(), kBlockTokens, *row);
      relative.insert(relative.end(), row, row + count);
      relative.insert(relative.end(), kBlockTokens, row[count - 1]);
    }
  }
  for (int32_t i = 0; i < options.num_layers; ++i) {
    const LayerAttention layer = spec.layers.empty() ? LayerAttention() : spec.layers[i];
    size_t index = 0;
    while (index < classes.size() && classes[index].layer != layer) ++index;
    class_of.push_back(static_cast<int32_t>(index));
    if (index < classes.size()) continue;
    LayerClass cls;
    cls.layer = layer;
    cls.bias = layer.position_bias && layer.reach != AttentionReach::kCross &&
               (!slopes.empty() || !relative.empty());
    cls.variant = VariantSoftmaxFor(options.isa);
    cls.plain = IsPlainCausal(layer) && !cls.bias && cap == 0;
    classes.push_back(std::move(cls));
  }
}

void AttentionKernel::State::MakePlans() {
  const AttentionShape& shape = options.shape;
  if (options.cascade && tiling.tokens_per_tile > 1 && options.max_seqs > 1) {
    const int64_t per_token = int64_t{shape.num_heads} * (stride + 2);
    max_carried = static_cast<int32_t>(
        std::min({int64_t{options.max_rows}, int64_t{options.max_seqs} * tiling.tokens_per_tile,
                  kMaxCarriedFloats / per_token}));
    cascade = std::make_unique<AttentionCascade>(options.max_seqs, tiling.tokens_per_tile);
  }
  int32_t max_splits = 0, max_shared = 0;
  for (LayerClass& cls : classes) {
    const bool cross = cls.layer.reach == AttentionReach::kCross;
    cls.plan = std::make_unique<AttentionPlan>(AttentionPlanOptions{
        .tiling = tiling,
        .num_kv_heads = shape.num_kv_heads,
        .workers = options.workers,
        .max_rows = options.max_rows,
        .max_seqs = options.max_seqs,
        .context_tokens = cross ? options.cross_tokens : options.context_tokens,
        .state_stride = stride,
        .split_long_items = options.split_long_items,
        .max_carried = cross ? 0 : max_carried,
        .layer = cls.layer});
    max_splits = std::max(max_splits, cls.plan->max_splits());
    max_shared = std::max(max_shared, cls.plan->max_shared());
  }
  next_item = std::make_unique<Counter[]>(options.num_layers);
  chunks_done = std::make_unique<Counter[]>(max_splits);
  carry_ready = std::make_unique<Counter[]>(max_shared);
}

namespace {

absl::Status Check(const AttentionOptions& options) {
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
  const AttentionSpec& spec = options.spec;
  const RelativeBias& relative = spec.relative;
  const size_t heads = shape.num_heads, layers = options.num_layers;
  const auto sized = [](size_t size, size_t wanted) { return size == 0 || size == wanted; };
  if (!sized(spec.layers.size(), layers) || !sized(spec.sinks.size(), layers * heads) ||
      !sized(spec.alibi_slopes.size(), heads)) {
    return absl::InvalidArgumentError(
        "attention: layers, sinks or slopes do not fit the numbers of layers and heads");
  }
  const int64_t distances = int64_t{relative.max_distance} - relative.min_distance + 1;
  if (!relative.values.empty() &&
      (distances < 1 || relative.values.size() != heads * static_cast<size_t>(distances)))
    return absl::InvalidArgumentError("attention: relative bias of a wrong size");
  if (!(spec.logit_cap >= 0))
    return absl::InvalidArgumentError("attention: the logit cap is negative");
  for (const LayerAttention& layer : spec.layers) {
    if (layer.window < 0 || layer.local_chunk < 0 || layer.sink_tokens < 0)
      return absl::InvalidArgumentError("attention: a negative window, chunk or number of sinks");
  }
  return absl::OkStatus();
}

}  // namespace

AttentionKernel::AttentionKernel(std::unique_ptr<State> state) : state_(std::move(state)) {}
AttentionKernel::~AttentionKernel() = default;

absl::StatusOr<std::unique_ptr<AttentionKernel>> AttentionKernel::Create(
    const AttentionOptions& options) {
  RETURN_IF_ERROR(Check(options));
  CHECK(options.workers > 0 && options.num_layers > 0 && options.max_rows > 0 &&
        options.max_seqs > 0);
  const AttentionShape& shape = options.shape;
  auto state = std::make_unique<State>();
  state->options = options;
  state->tiling = QueryTiling::Make(shape.num_heads / shape.num_kv_heads);
  state->layout = KvLayout::Make(options.kv_dtype, shape.num_kv_heads, shape.head_dim);
  state->tiles = &AttentionTilesFor(options.isa);
  state->stride = RoundUp16(shape.head_dim);
  state->products.Choose(options, state->layout, state->tiling, state->stride);
  state->TakeSpec();
  state->MakePlans();
  RETURN_IF_ERROR(state->TakeScratch());
  return std::unique_ptr<AttentionKernel>(new AttentionKernel(std::move(state)));
}

void AttentionKernel::Plan(const StepBatch& batch, const AttentionFacts& facts) {
  State& s = *state_;
  DCHECK(facts.seqs.empty() || facts.seqs.size() == batch.seqs.size());
  if (s.cascade != nullptr) s.cascade->Build(batch);
  s.step = {.seqs = batch.seqs, .facts = facts, .cascade = s.cascade.get()};
  for (LayerClass& cls : s.classes) {
    cls.block_ids = cls.layer.reach == AttentionReach::kCross ? facts.cross_block_ids.data()
                                                              : batch.block_ids.data();
    cls.plan->Build(s.step);
  }
  s.macs = s.kv_bytes = 0;
  for (int32_t layer = 0; layer < s.options.num_layers; ++layer) {
    s.next_item[layer].value.store(0, std::memory_order_relaxed);
    const AttentionPlan& plan = *s.classes[s.class_of[layer]].plan;
    s.macs += 2 * plan.visible_tokens() * s.options.shape.num_heads * s.options.shape.head_dim;
    s.kv_bytes += plan.tiles_read() * static_cast<int64_t>(s.layout.block_bytes());
  }
  if (s.cascade == nullptr || s.cascade->groups().empty()) return;
  for (int32_t i = 0; i < s.classes[0].plan->max_shared(); ++i)
    s.carry_ready[i].value.store(0, std::memory_order_relaxed);
}

void AttentionKernel::Run(int32_t worker, int32_t layer, const KvLayerView& kv,
                          const AttentionIo& io) {
  State& s = *state_;
  const LayerClass& cls = s.classes[s.class_of[layer]];
  const std::span<const AttentionItem> items = cls.plan->items();
  const LayerRun run = {.layer = layer,
                        .cls = cls,
                        .kv = kv,
                        .io = io,
                        .scratch = s.scratch[worker],
                        .rows = s.rows_of_items[worker]};
  std::atomic<int32_t>& next = s.next_item[layer].value;
  for (;;) {
    const int32_t index = next.fetch_add(1, std::memory_order_relaxed);
    if (index >= static_cast<int32_t>(items.size())) return;
    s.RunItem(items[index], run);
  }
}

int64_t AttentionKernel::scratch_bytes() const {
  return static_cast<int64_t>(state_->arena.size());
}
int64_t AttentionKernel::planned_macs() const { return state_->macs; }
int64_t AttentionKernel::planned_kv_bytes() const { return state_->kv_bytes; }
bool AttentionKernel::uses_ukernels() const { return state_->products.uses_ukernels(); }
bool AttentionKernel::uses_bf16_products() const { return state_->products.uses_bf16(); }

}  // namespace quire
