#include "runtime/loader/model_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/testing/gguf_builder.h"
#include "tests/testing/memory_file.h"

// Rows G7, G10, G13, G15-G18 of the fault catalogue: keys and tensors against their meaning.
namespace quire {
namespace {

using testing::AllOf;
using testing::HasSubstr;

absl::StatusOr<std::unique_ptr<ModelHeader>> Read(const GgufBuilder& b) {
  const MemoryFile memory(b.Build());
  const absl::StatusOr<ModelFile> file = ModelFile::Open(memory.path());
  if (!file.ok()) return file.status();
  return ReadModelHeader(*file);
}

std::string ErrorOf(const GgufBuilder& b) {
  const auto header = Read(b);
  if (header.ok()) return "(accepted)";
  EXPECT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(header.status().message());
}

std::string WarningsOf(const GgufBuilder& b) {
  const auto header = Read(b);
  if (!header.ok()) return std::string(header.status().message());
  std::string all;
  for (const std::string& w : (*header)->warnings) all += w + "\n";
  return all;
}

TEST(ModelHeader, ReadsATinyModel) {
  const auto header = Read(TinyLlama({}));
  ASSERT_TRUE(header.ok()) << header.status();
  const ModelConfig& c = (*header)->config;
  EXPECT_EQ(c.vocab_size, 40);
  EXPECT_EQ(c.hidden_size, 64);
  EXPECT_EQ(c.head_dim, 32);
  EXPECT_EQ(c.rope_dims, 32);
  EXPECT_EQ(c.attention_scale, 1.0f / std::sqrt(32.0f));
  EXPECT_EQ(c.rope_kind, RopeKind::kInterleaved);
  EXPECT_EQ(c.quantization, "F32");
  EXPECT_EQ((*header)->plan.entries.size(), 2u * 9 + 3);
  EXPECT_EQ(WarningsOf(TinyLlama({})), "");
}

TEST(ModelHeader, CountsBytesOfATokenWithoutASeparateEmbedding) {
  const auto tied = Read(TinyLlama({.tied = true})), untied = Read(TinyLlama({.tied = false}));
  ASSERT_TRUE(tied.ok() && untied.ok());
  const ModelWeights& t = (*tied)->weights;
  const ModelWeights& u = (*untied)->weights;
  EXPECT_EQ(t.bytes_per_token, t.bytes);
  EXPECT_EQ(u.bytes_per_token, t.bytes + u.embedding.panel_bytes);
  EXPECT_EQ(u.bytes, t.bytes + PackedBytes(DType::kF32, 40, 64));
}

// F.G15
TEST(ModelHeader, ChecksTheRangeOfEveryNumber) {
  const std::pair<const char*, std::vector<uint32_t>> wrong[] = {
      {"llama.block_count", {0, 1025, 0x80000000u}},
      {"llama.context_length", {0, 0xffffffffu}},
      {"llama.embedding_length", {0, 33, 0x80000000u}},
      {"llama.feed_forward_length", {0, 33, 0xffffffffu}},
      {"llama.attention.head_count", {0, 3, 0xffffffffu}},
      {"llama.attention.head_count_kv", {0, 3, 0xffffffffu}},
      {"llama.attention.key_length", {0, 31, 33, 257}},
      {"llama.attention.value_length", {0, 64}},
      {"llama.rope.dimension_count", {0, 3, 34, 0xffffffffu}},
      {"llama.vocab_size", {0, 41}},
      {"llama.expert_count", {8}},
      {"llama.attention.sliding_window", {100}},
      {"split.count", {2}},
      {"general.quantization_version", {1}}};
  for (const auto& [key, values] : wrong) {
    for (const uint32_t value : values) {
      EXPECT_THAT(ErrorOf(TinyLlama({}).U32(key, value)),
                  AllOf(HasSubstr("offset "), HasSubstr(key)))
          << value;
    }
  }
}

TEST(ModelHeader, ChecksTheRangeOfEveryFraction) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInf = std::numeric_limits<float>::infinity();
  const std::pair<const char*, std::vector<float>> wrong[] = {
      {"llama.attention.layer_norm_rms_epsilon", {0, -1e-5f, kNan, kInf, 2}},
      {"llama.rope.freq_base", {0, -1, kNan, kInf}},
      {"llama.attention.scale", {0, -1, kNan, kInf}},
      {"llama.rope.scale_linear", {0, -2, kNan, kInf}},
      {"llama.residual_scale", {2, kNan}},
      {"llama.attention.clamp_kqv", {8, kNan}}};
  for (const auto& [key, values] : wrong) {
    for (const float value : values)
      EXPECT_THAT(ErrorOf(TinyLlama({}).F32(key, value)), HasSubstr(key)) << value;
  }
}

TEST(ModelHeader, RefusesTraitsThatAreNotBuilt) {
  EXPECT_THAT(ErrorOf(TinyLlama({}).String("llama.rope.scaling.type", "yarn")),
              HasSubstr("found \"yarn\", supported: none linear"));
  EXPECT_THAT(ErrorOf(TinyLlama({}).Bool("llama.attention.causal", false)),
              HasSubstr("llama.attention.causal"));
  EXPECT_THAT(ErrorOf(TinyLlama({}).String("llama.tensor_data_layout", "x")),
              HasSubstr("llama.tensor_data_layout"));
  EXPECT_THAT(
      ErrorOf(TinyLlama({}).Add({"blk.0.attn_q.bias", 0, {64}, std::string(256, '\0'), {}})),
      HasSubstr("tensor blk.0.attn_q.bias: biases are not supported"));
}

TEST(ModelHeader, ReadsLinearRopeScaling) {
  const auto header = Read(TinyLlama({})
                               .String("llama.rope.scaling.type", "linear")
                               .F32("llama.rope.scaling.factor", 4));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ((*header)->config.rope_scale, 4.0f);
  EXPECT_THAT(ErrorOf(TinyLlama({}).String("llama.rope.scaling.type", "linear")),
              HasSubstr("key llama.rope.scaling.factor: missing"));
}

// F.G7
TEST(ModelHeader, ReadsKeysAsTheirTypeOnly) {
  EXPECT_THAT(ErrorOf(TinyLlama({}).F32("llama.block_count", 2)),
              HasSubstr("key llama.block_count: found type FLOAT32, expected UINT32"));
  EXPECT_THAT(ErrorOf(TinyLlama({}).Raw("tokenizer.ggml.token_type", 9,
                                        Bytes(0u) + Bytes(uint64_t{40}) + std::string(40, 1))),
              HasSubstr("found array of UINT8, expected INT32"));
  EXPECT_THAT(ErrorOf(TinyLlama({}).U32("tokenizer.ggml.tokens", 7)),
              HasSubstr("found type UINT32, expected ARRAY"));
  EXPECT_THAT(ErrorOf(TinyLlama({}).U32("tokenizer.chat_template", 7)),
              HasSubstr("expected STRING"));
  EXPECT_THAT(ErrorOf(TinyLlama({}).U32("tokenizer.ggml.add_bos_token", 1)),
              HasSubstr("expected BOOL"));
}

// F.G16
TEST(ModelHeader, ListsAllMissingKeysInOneError) {
  GgufBuilder b = TinyLlama({});
  for (const char* key :
       {"general.architecture", "llama.block_count", "llama.rope.freq_base", "tokenizer.ggml.model",
        "tokenizer.ggml.tokens", "llama.attention.layer_norm_rms_epsilon"}) {
    b.Remove(key);
  }
  EXPECT_THAT(ErrorOf(b), AllOf(HasSubstr("key general.architecture: missing"),
                                HasSubstr("key llama.block_count: missing"),
                                HasSubstr("key tokenizer.ggml.model: missing"),
                                HasSubstr("key tokenizer.ggml.tokens: missing"),
                                HasSubstr("key llama.attention.layer_norm_rms_epsilon: missing")));
  EXPECT_THAT(ErrorOf(TinyLlama({}).String("general.architecture", "mamba")),
              HasSubstr("found \"mamba\", supported: llama"));
  EXPECT_THAT(ErrorOf(GgufBuilder()), HasSubstr("no tensors"));
}

// F.G17
TEST(ModelHeader, ChecksTheVocabularyAgainstTheModel) {
  std::vector<std::string> pieces;
  for (int i = 0; i < 39; ++i) pieces.push_back("p" + std::to_string(i));
  std::vector<int32_t> kinds(39, 1);
  EXPECT_THAT(ErrorOf(TinyLlama({})
                          .Strings("tokenizer.ggml.tokens", pieces)
                          .I32s("tokenizer.ggml.token_type", kinds)),
              HasSubstr("tensor token_embd.weight: found shape [64, 40], expected [64, 39]"));
  EXPECT_THAT(ErrorOf(TinyLlama({}).I32s("tokenizer.ggml.token_type", kinds)),
              HasSubstr("found 39 entries, expected one for each of 40 tokens"));
  for (const char* name : {"bos", "eos", "eot", "padding", "unknown"}) {
    const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    EXPECT_THAT(ErrorOf(TinyLlama({}).U32(key, 40)),
                AllOf(HasSubstr(key), HasSubstr("found 40, expected less than")));
    EXPECT_THAT(ErrorOf(TinyLlama({}).U32(key, 0xffffffffu)), HasSubstr(key));
  }
  kinds.push_back(7);
  EXPECT_THAT(ErrorOf(TinyLlama({}).I32s("tokenizer.ggml.token_type", kinds)),
              HasSubstr("found 7 for token 39"));
  EXPECT_THAT(ErrorOf(TinyLlama({}).Remove("tokenizer.ggml.merges")),
              HasSubstr("tokenizer.ggml.merges: missing"));
  EXPECT_THAT(ErrorOf(TinyLlama({}).Remove("tokenizer.ggml.pre")),
              HasSubstr("tokenizer.ggml.pre: missing"));
  EXPECT_THAT(ErrorOf(TinyLlama({}).Strings("tokenizer.ggml.tokens", {})),
              HasSubstr("found no tokens"));
}

// F.G18
TEST(ModelHeader, WarnsOfRepeatedPiecesAndKeepsTheirBytes) {
  std::vector<std::string> pieces(40, "same");
  pieces[5] = "\xff\xfe";
  const auto header = Read(TinyLlama({}).Strings("tokenizer.ggml.tokens", pieces));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ((*header)->vocab.pieces, pieces);
  ASSERT_EQ((*header)->warnings.size(), 1u);
  EXPECT_THAT((*header)->warnings[0], HasSubstr("38 pieces are repeated, for one \"same\""));
}

// F.G13, F.G10
TEST(ModelHeader, ListsAllMissingTensorsInOneError) {
  GgufBuilder b = TinyLlama({});
  b.RemoveTensor("output_norm.weight").RemoveTensor("blk.1.ffn_up.weight");
  b.tensor("blk.0.attn_k.weight").dims = {64, 0};
  b.tensor("blk.0.attn_k.weight").data = "";
  EXPECT_THAT(
      ErrorOf(b),
      AllOf(HasSubstr("tensor output_norm.weight: missing"),
            HasSubstr("tensor blk.1.ffn_up.weight: missing"),
            HasSubstr("tensor blk.0.attn_k.weight: found shape [64, 0], expected [64, 32]")));
  b = TinyLlama({}).U32("llama.block_count", 1024);
  EXPECT_THAT(ErrorOf(b), HasSubstr("more"));
}

TEST(ModelHeader, ChecksEveryShape) {
  for (const char* name :
       {"token_embd.weight", "blk.0.attn_q.weight", "blk.1.attn_v.weight", "blk.0.ffn_down.weight",
        "blk.0.ffn_norm.weight", "output_norm.weight", "output.weight"}) {
    GgufBuilder b = TinyLlama({});
    b.tensor(name).dims[0] += 32;
    b.tensor(name).data.resize(b.tensor(name).data.size() * 2);
    std::vector<uint64_t>& dims = b.tensor(name).dims;
    size_t elements = 1;
    for (const uint64_t d : dims) elements *= d;
    b.tensor(name).data.resize(elements * 4);
    EXPECT_THAT(ErrorOf(b), HasSubstr(std::string("tensor ") + name + ": found shape [")) << name;
  }
  GgufBuilder quantised_norm = TinyLlama({});
  quantised_norm.tensor("output_norm.weight") = {
      "output_norm.weight", 8, {64}, std::string(68, '\0'), {}};
  EXPECT_THAT(ErrorOf(quantised_norm), HasSubstr("found type Q8_0, expected F32, F16 or BF16"));
}

TEST(ModelHeader, WarnsOfWhatItIgnores) {
  EXPECT_THAT(WarningsOf(TinyLlama({}).Add({"extra.weight", 0, {8}, std::string(32, '\0'), {}})),
              HasSubstr("unknown tensors are ignored: extra.weight"));
  EXPECT_THAT(WarningsOf(TinyLlama({}).U32("llama.new_trick", 1)),
              HasSubstr("unknown keys are ignored: llama.new_trick"));
}

}  // namespace
}  // namespace quire
