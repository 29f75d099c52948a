// Attention variants by name, to be combined into specs. Each edits the spec of a one-layer kernel.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "runtime/kernels/attention.h"

namespace quire {

struct Variant {
  std::string name;
  std::function<void(AttentionSpec&, const AttentionShape&)> apply;
};

constexpr AttentionShape Shape(int32_t heads, int32_t kv_heads, int32_t dim) {
  float scale = 1;
  for (int32_t i = 0; i < 30; ++i) scale = 0.5f * (scale + 1 / (static_cast<float>(dim) * scale));
  return {.num_heads = heads, .num_kv_heads = kv_heads, .head_dim = dim, .scale = scale};
}

inline AttentionSpec Make(const std::vector<Variant>& variants, const AttentionShape& shape) {
  AttentionSpec spec;
  spec.layers.resize(1);
  for (const Variant& variant : variants) variant.apply(spec, shape);
  return spec;
}

// A variant of visibility alone.
inline Variant Of(std::string name, std::function<void(LayerAttention&)> edit) {
  return {std::move(name),
          [edit](AttentionSpec& spec, const AttentionShape&) { edit(spec.layers[0]); }};
}

inline Variant Window(int32_t n) {
  return Of("window", [n](LayerAttention& layer) { layer.window = n; });
}
inline Variant LocalChunk(int32_t n) {
  return Of("local chunk", [n](LayerAttention& layer) { layer.local_chunk = n; });
}
inline Variant SinkTokens(int32_t n) {
  return Of("sink tokens", [n](LayerAttention& layer) { layer.sink_tokens = n; });
}
inline Variant Globals() {
  return Of("globals", [](LayerAttention& layer) { layer.global_tokens = true; });
}
inline Variant Prefix() {
  return Of("prefix", [](LayerAttention& layer) { layer.reach = AttentionReach::kPrefix; });
}
inline Variant Bidirectional() {
  return Of("bidirectional", [](LayerAttention& layer) { layer.reach = AttentionReach::kAll; });
}
inline Variant Cross() {
  return Of("cross", [](LayerAttention& layer) { layer.reach = AttentionReach::kCross; });
}
inline Variant SoftCap(float cap) {
  return {"soft-cap", [cap](AttentionSpec& spec, const AttentionShape&) { spec.logit_cap = cap; }};
}
inline Variant LearnedSinks() {
  return {"learned sinks", [](AttentionSpec& spec, const AttentionShape& shape) {
            for (int32_t head = 0; head < shape.num_heads; ++head)
              spec.sinks.push_back(static_cast<float>(head % 5) - 1.5f);
          }};
}
inline Variant Alibi(float steepest = 0.5f) {
  return {"ALiBi", [steepest](AttentionSpec& spec, const AttentionShape& shape) {
            for (int32_t head = 0; head < shape.num_heads; ++head) {
              const float power =
                  8.0f * static_cast<float>(head) / static_cast<float>(shape.num_heads);
              spec.alibi_slopes.push_back(steepest * std::exp2(-power));
            }
          }};
}
inline Variant Relative(int32_t min, int32_t max, float size = 2.0f) {
  return {"relative bias", [=](AttentionSpec& spec, const AttentionShape& shape) {
            spec.relative = {.min_distance = min, .max_distance = max, .values = {}};
            for (int32_t i = 0; i < shape.num_heads * (max - min + 1); ++i)
              spec.relative.values.push_back(size * std::sin(static_cast<float>(i * i % 97)));
          }};
}

inline std::vector<Variant> AllVariants() {
  return {Window(90),         LocalChunk(100), SinkTokens(4), Globals(),      Prefix(),
          Bidirectional(),    Cross(),         SoftCap(3),    LearnedSinks(), Alibi(),
          Relative(-128, 128)};
}

}  // namespace quire
