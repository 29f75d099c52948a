#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/absl_view.h"
#include "runtime/loader/llama_reader.h"

namespace quire {
namespace {

constexpr uint32_t kColumnBlock = 32;  // activations are quantised in blocks of 32

std::string Key(std::string_view name) { return absl::StrCat("llama.", View(name)); }

int32_t Int(KeyReader& keys, std::string_view name, UintRange range,
            std::optional<uint32_t> fallback = {}) {
  return static_cast<int32_t>(keys.Uint(Key(name), range, fallback));
}

void RequireMultiple(KeyReader& keys, std::string_view name, int32_t value, int32_t of) {
  if (value % of != 0)
    keys.Problem(Key(name), absl::StrCat("found ", value, ", expected a multiple of ", of));
}

void ReadHeads(KeyReader& keys, ModelConfig& c) {
  c.num_heads = Int(keys, "attention.head_count", {1, 1024});
  c.num_kv_heads = Int(keys, "attention.head_count_kv", {1, 1024}, c.num_heads);
  if (c.num_heads % c.num_kv_heads != 0) {
    keys.Problem(Key("attention.head_count"),
                 absl::StrCat("found ", c.num_heads, ", expected a multiple of ",
                              Key("attention.head_count_kv"), " = ", c.num_kv_heads));
  }
  if (keys.Has(Key("attention.key_length"))) {
    c.head_dim = Int(keys, "attention.key_length", {32, 256});
  } else {
    RequireMultiple(keys, "embedding_length", c.hidden_size, c.num_heads);
    c.head_dim = c.hidden_size / c.num_heads;
  }
  if (!(c.head_dim >= 32 && c.head_dim <= 256 && c.head_dim % 2 == 0)) {
    keys.Problem(keys.Has(Key("attention.key_length")) ? Key("attention.key_length")
                                                       : Key("attention.head_count"),
                 absl::StrCat("found a head dimension of ", c.head_dim,
                              ", expected an even one from 32 to 256"));
  }
  const int32_t value_dim = Int(keys, "attention.value_length", {1, 1024}, c.head_dim);
  if (value_dim != c.head_dim) {
    keys.Problem(Key("attention.value_length"),
                 absl::StrCat("found ", value_dim, ", expected ", c.head_dim));
  }
  c.attention_scale = keys.Float(Key("attention.scale"), {0, 1e3f, true},
                                 1.0f / std::sqrt(static_cast<float>(c.head_dim)));
}

void ReadRope(KeyReader& keys, ModelConfig& c) {
  c.rope_kind = RopeKind::kInterleaved;
  c.rope_dims = Int(keys, "rope.dimension_count", {2, 256}, c.head_dim);
  if (c.rope_dims % 2 != 0 || c.rope_dims > c.head_dim) {
    keys.Problem(
        Key("rope.dimension_count"),
        absl::StrCat("found ", c.rope_dims, ", expected an even number up to ", c.head_dim));
  }
  c.rope_theta = keys.Float(Key("rope.freq_base"), {1.0f, 1e12f}, 10000.0f);
  const std::string type = keys.String(Key("rope.scaling.type"), "none");
  if (type == "linear") {
    c.rope_scale = keys.Float(Key("rope.scaling.factor"), {0, 1e6f, true});
  } else if (type != "none") {
    keys.Problem(Key("rope.scaling.type"),
                 absl::StrCat("found \"", Printable(type), "\", supported: none linear"));
  } else if (keys.Has(Key("rope.scale_linear"))) {  // the older name
    c.rope_scale = keys.Float(Key("rope.scale_linear"), {0, 1e6f, true});
  }
}

// Keys that change the arithmetic in ways that are not built: any other value than the neutral one
// is refused.
void RefuseUnsupported(KeyReader& keys, const ModelConfig& c) {
  for (const std::string_view name : {"expert_count", "expert_used_count"}) {
    if (keys.Uint(Key(name), {}, 0) != 0)
      keys.Problem(Key(name), "experts are not supported, expected 0");
  }
  const uint32_t window = keys.Uint(Key("attention.sliding_window"), {}, 0);
  if (window != 0 && window < static_cast<uint32_t>(c.context_tokens)) {
    keys.Problem(Key("attention.sliding_window"),
                 absl::StrCat("found ", window, ", supported: none"));
  }
  for (const std::string_view name : {"residual_scale", "embedding_scale", "logit_scale"}) {
    const float scale = keys.Float(Key(name), {-1e9f, 1e9f}, 1.0f);
    if (scale != 1.0f) keys.Problem(Key(name), absl::StrCat("found ", scale, ", supported: 1"));
  }
  if (!keys.Bool(Key("attention.causal"), true))
    keys.Problem(Key("attention.causal"), "found false, supported: true");
  if (keys.Bool(Key("use_parallel_residual"), false)) {
    keys.Problem(Key("use_parallel_residual"), "found true, supported: false");
  }
  for (const std::string_view name : {"attention.clamp_kqv", "attention.max_alibi_bias",
                                      "attn_logit_softcapping", "final_logit_softcapping"}) {
    if (keys.Float(Key(name), {-1e9f, 1e9f}, 0.0f) != 0.0f)
      keys.Problem(Key(name), "not supported, expected 0");
  }
}

}  // namespace

ModelConfig ReadLlamaConfig(KeyReader& keys, uint32_t vocab_size,
                            std::vector<std::string>& warnings) {
  ModelConfig c;
  c.architecture = "llama";
  c.name = keys.String("general.name", "");
  c.vocab_size = static_cast<int32_t>(vocab_size);
  const uint32_t stated = keys.Uint(Key("vocab_size"), {}, vocab_size);
  if (stated != vocab_size && vocab_size != 0) {
    keys.Problem(Key("vocab_size"),
                 absl::StrCat("found ", stated, ", expected the ", vocab_size, " tokens"));
  }
  c.num_layers = Int(keys, "block_count", {1, 1024});
  c.context_tokens = Int(keys, "context_length", {1, 1 << 24});
  c.hidden_size = Int(keys, "embedding_length", {kColumnBlock, 1 << 16});
  c.ffn_size = Int(keys, "feed_forward_length", {kColumnBlock, 1 << 20});
  RequireMultiple(keys, "embedding_length", c.hidden_size, kColumnBlock);
  RequireMultiple(keys, "feed_forward_length", c.ffn_size, kColumnBlock);
  c.rms_eps = keys.Float(Key("attention.layer_norm_rms_epsilon"), {0, 1.0f, true});
  ReadHeads(keys, c);
  if (c.num_heads * c.head_dim % static_cast<int32_t>(kColumnBlock) != 0) {
    keys.Problem(Key("attention.head_count"),
                 absl::StrCat("found ", c.num_heads, " heads of ", c.head_dim,
                              ", expected a multiple of ", kColumnBlock, " in all"));
  }
  ReadRope(keys, c);
  RefuseUnsupported(keys, c);
  if (keys.Has(Key("tensor_data_layout"))) {
    const std::string layout = keys.String(Key("tensor_data_layout"));
    if (layout != "Meta AI original pth") {
      keys.Problem(Key("tensor_data_layout"),
                   absl::StrCat("found \"", Printable(layout),
                                "\", supported: ", "\"Meta AI original pth\""));
    }
  }
  const std::vector<std::string> unread = keys.Unread("llama.");
  if (!unread.empty())
    warnings.push_back(absl::StrCat("unknown keys are ignored: ", absl::StrJoin(unread, ", ")));
  return c;
}

}  // namespace quire
