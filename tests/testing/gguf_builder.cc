#include "tests/testing/gguf_builder.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "absl/log/check.h"

namespace quire {
namespace {

constexpr uint32_t kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9;

void AlignTo(std::string& out, uint64_t alignment) {
  if (alignment == 0) return;
  while (out.size() % alignment != 0) out.push_back('\0');
}

// f16 of a small positive power-of-two-ish number: exponent in the normal range, mantissa free.
std::string HalfScale(std::mt19937& rng) {
  const auto bits = static_cast<uint16_t>((8u << 10) | (rng() & 0x3ff) | ((rng() & 1) << 15));
  return Bytes(bits);
}

}  // namespace

std::string LengthPrefixed(std::string_view s) {
  return Bytes(uint64_t{s.size()}) + std::string(s);
}

GgufBuilder& GgufBuilder::Append(std::string_view key, uint32_t type,
                                 std::string_view value_bytes) {
  keys_.push_back({std::string(key), Bytes(type) + std::string(value_bytes)});
  return *this;
}

GgufBuilder& GgufBuilder::Raw(std::string_view key, uint32_t type, std::string_view value_bytes) {
  for (Key& k : keys_) {
    if (k.name != key) continue;
    k.bytes = Bytes(type) + std::string(value_bytes);
    return *this;
  }
  return Append(key, type, value_bytes);
}

GgufBuilder& GgufBuilder::U32(std::string_view key, uint32_t value) {
  return Raw(key, kU32, Bytes(value));
}
GgufBuilder& GgufBuilder::F32(std::string_view key, float value) {
  return Raw(key, kF32, Bytes(value));
}
GgufBuilder& GgufBuilder::Bool(std::string_view key, bool value) {
  return Raw(key, kBool, std::string(1, value ? '\1' : '\0'));
}
GgufBuilder& GgufBuilder::String(std::string_view key, std::string_view value) {
  return Raw(key, kString, LengthPrefixed(value));
}

GgufBuilder& GgufBuilder::Strings(std::string_view key, const std::vector<std::string>& values) {
  std::string bytes = Bytes(kString) + Bytes(uint64_t{values.size()});
  for (const std::string& v : values) bytes += LengthPrefixed(v);
  return Raw(key, kArray, bytes);
}

GgufBuilder& GgufBuilder::I32s(std::string_view key, const std::vector<int32_t>& values) {
  std::string bytes = Bytes(kI32) + Bytes(uint64_t{values.size()});
  for (const int32_t v : values) bytes += Bytes(v);
  return Raw(key, kArray, bytes);
}

GgufBuilder& GgufBuilder::Remove(std::string_view key) {
  std::erase_if(keys_, [&](const Key& k) { return k.name == key; });
  return *this;
}

GgufBuilder& GgufBuilder::Add(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return *this;
}

GgufBuilder& GgufBuilder::RemoveTensor(std::string_view name) {
  std::erase_if(tensors_, [&](const Tensor& t) { return t.name == name; });
  return *this;
}

GgufBuilder::Tensor& GgufBuilder::tensor(std::string_view name) {
  const auto it = std::ranges::find_if(tensors_, [&](const Tensor& t) { return t.name == name; });
  CHECK(it != tensors_.end());
  return *it;
}

std::string GgufBuilder::Build(size_t* header_bytes) const {
  std::string out = "GGUF" + Bytes(version) + Bytes(tensor_count.value_or(tensors_.size())) +
                    Bytes(key_count.value_or(keys_.size()));
  for (const Key& key : keys_) out += LengthPrefixed(key.name) + key.bytes;
  uint64_t offset = 0;
  for (const Tensor& t : tensors_) {
    out += LengthPrefixed(t.name) + Bytes(static_cast<uint32_t>(t.dims.size()));
    for (const uint64_t dim : t.dims) out += Bytes(dim);
    out += Bytes(t.type) + Bytes(t.offset.value_or(offset));
    offset += t.data.size();
    if (alignment != 0) offset = (offset + alignment - 1) / alignment * alignment;
  }
  if (header_bytes != nullptr) *header_bytes = out.size();
  for (const Tensor& t : tensors_) {
    AlignTo(out, alignment);
    out += t.data;
  }
  return out;
}

std::string SeededBlocks(DType type, uint64_t elements, uint32_t seed) {
  std::mt19937 rng(seed);
  const DTypeTraits& t = TraitsOf(type);
  const uint64_t blocks = elements / static_cast<uint64_t>(t.block_elements);
  std::string out;
  if (type == DType::kF32) {
    std::normal_distribution<float> normal(0.0f, 0.1f);
    for (uint64_t i = 0; i < blocks; ++i) out += Bytes(normal(rng));
    return out;
  }
  const auto size = static_cast<size_t>(t.block_bytes);
  for (uint64_t b = 0; b < blocks; ++b) {
    std::string block;
    while (block.size() < size) block.push_back(static_cast<char>(rng()));
    // All scales of a block are small and finite.
    const bool two = type == DType::kQ4_1 || type == DType::kQ5_1 || type == DType::kQ4_K ||
                     type == DType::kQ5_K;
    if (type == DType::kBF16)
      block = Bytes(static_cast<uint16_t>(0x3d00 | (rng() & 0x80ff)));
    else if (type == DType::kQ6_K)
      block.replace(208, 2, HalfScale(rng));
    else
      block.replace(0, 2, HalfScale(rng));
    if (two) block.replace(2, 2, HalfScale(rng));
    out += block;
  }
  return out;
}

GgufBuilder TinyLlama(const TinyLlamaShape& s) {
  GgufBuilder b;
  b.String("general.architecture", "llama").String("general.name", "tiny");
  b.U32("llama.block_count", s.layers).U32("llama.context_length", s.context);
  b.U32("llama.embedding_length", s.hidden).U32("llama.feed_forward_length", s.ffn);
  b.U32("llama.attention.head_count", s.heads).U32("llama.attention.head_count_kv", s.kv_heads);
  b.F32("llama.attention.layer_norm_rms_epsilon", 1e-5f).F32("llama.rope.freq_base", 10000.0f);
  std::vector<std::string> pieces;
  for (uint32_t i = 0; i < s.vocab; ++i) pieces.push_back("t" + std::to_string(i));
  std::vector<int32_t> kinds(s.vocab, 1);
  kinds[0] = 3;
  b.String("tokenizer.ggml.model", "gpt2").String("tokenizer.ggml.pre", "smollm");
  b.Strings("tokenizer.ggml.tokens", pieces).I32s("tokenizer.ggml.token_type", kinds);
  b.Strings("tokenizer.ggml.merges", {})
      .U32("tokenizer.ggml.bos_token_id", 0)
      .U32("tokenizer.ggml.eos_token_id", 0);

  uint32_t seed = s.seed * 1000;
  const auto matrix = [&](const std::string& name, DType type, uint64_t cols, uint64_t rows) {
    b.Add({name,
           static_cast<uint32_t>(type),
           {cols, rows},
           SeededBlocks(type, cols * rows, ++seed),
           {}});
  };
  const auto norm = [&](const std::string& name) {
    std::string ones;
    for (uint32_t i = 0; i < s.hidden; ++i) ones += Bytes(1.0f);
    b.Add({name, 0, {s.hidden}, ones, {}});
  };
  const uint64_t kv = uint64_t{s.hidden} / s.heads * s.kv_heads;
  matrix("token_embd.weight", s.embedding_type, s.hidden, s.vocab);
  for (uint32_t i = 0; i < s.layers; ++i) {
    const std::string p = "blk." + std::to_string(i) + ".";
    norm(p + "attn_norm.weight");
    matrix(p + "ffn_down.weight", s.matrix_type, s.ffn, s.hidden);
    matrix(p + "ffn_gate.weight", s.matrix_type, s.hidden, s.ffn);
    matrix(p + "ffn_up.weight", s.matrix_type, s.hidden, s.ffn);
    norm(p + "ffn_norm.weight");
    matrix(p + "attn_k.weight", s.matrix_type, s.hidden, kv);
    matrix(p + "attn_output.weight", s.matrix_type, s.hidden, s.hidden);
    matrix(p + "attn_q.weight", s.matrix_type, s.hidden, s.hidden);
    matrix(p + "attn_v.weight", s.matrix_type, s.hidden, kv);
  }
  norm("output_norm.weight");
  if (!s.tied) matrix("output.weight", s.embedding_type, s.hidden, s.vocab);
  return b;
}

}  // namespace quire
