#include "runtime/loader/model_loader.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/kernels/pack.h"
#include "tests/testing/gguf_builder.h"
#include "tests/testing/memory_file.h"

namespace quire {
namespace {

absl::StatusOr<LoadedModel> Load(const std::string& path, int threads = 2) {
  WorkerPool pool({.threads = threads, .pin = false});
  return LoadModel(path, {.pool = &pool, .progress = nullptr});
}

// The row of a matrix that the file holds at `name`, dequantised by the definition of its type.
std::vector<float> FileRow(GgufBuilder& file, std::string_view name, uint64_t row) {
  const GgufBuilder::Tensor& t = file.tensor(name);
  const DTypeTraits& traits = *FindDType(t.type);
  const size_t row_bytes = t.dims[0] / static_cast<uint64_t>(traits.block_elements) *
                           static_cast<size_t>(traits.block_bytes);
  std::vector<float> out(t.dims[0]);
  DequantizeBlocks(traits.type, reinterpret_cast<const std::byte*>(t.data.data()) + row * row_bytes,
                   static_cast<int64_t>(t.dims[0]), out.data());
  return out;
}

std::vector<float> PackedRow(const PackedMatrix& m, int32_t row) {
  std::vector<float> out(static_cast<size_t>(m.cols));
  UnpackRow(m, row, out.data());
  return out;
}

class ModelLoaderTypes : public testing::TestWithParam<DType> {};

TEST_P(ModelLoaderTypes, PacksEveryRowOfEveryKindOfTensor) {
  const DType type = GetParam();
  const auto cols = static_cast<uint32_t>(std::max(64, TraitsOf(type).block_elements));
  GgufBuilder file = TinyLlama({.hidden = cols, .ffn = cols, .matrix_type = type, .embedding_type = type});
  const MemoryFile memory(file.Build());
  const absl::StatusOr<LoadedModel> model = Load(memory.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->config.quantization, TraitsOf(type).name);
  const LayerWeights& layer = model->weights.layers.at(1);
  const std::pair<std::string, const PackedMatrix*> matrices[] = {
      {"token_embd.weight", &model->weights.embedding}, {"output.weight", &model->weights.lm_head},
      {"blk.1.attn_q.weight", &layer.wq},               {"blk.1.attn_k.weight", &layer.wk},
      {"blk.1.attn_v.weight", &layer.wv},               {"blk.1.attn_output.weight", &layer.wo},
      {"blk.1.ffn_gate.weight", &layer.gate},           {"blk.1.ffn_up.weight", &layer.up},
      {"blk.1.ffn_down.weight", &layer.down}};
  for (const auto& [name, matrix] : matrices) {
    ASSERT_EQ(static_cast<uint64_t>(matrix->rows), file.tensor(name).dims[1]) << name;
    for (int32_t row = 0; row < matrix->rows; ++row) {
      EXPECT_EQ(PackedRow(*matrix, row), FileRow(file, name, static_cast<uint64_t>(row))) << name << " row " << row;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelLoaderTypes, testing::ValuesIn([] {
                           std::vector<DType> types;
                           for (const DTypeTraits& t : kDTypes) types.push_back(t.type);
                           return types;
                         }()),
                         [](const auto& info) { return std::string(TraitsOf(info.param).name); });

TEST(ModelLoader, LoadsTheDefaultModel) {
  const char* path = std::getenv("QUIRE_TEST_MODEL");
  if (path == nullptr) GTEST_SKIP() << "QUIRE_TEST_MODEL is not set";
  const absl::StatusOr<LoadedModel> model = Load(path);
  ASSERT_TRUE(model.ok()) << model.status();
  const ModelConfig& c = model->config;
  EXPECT_EQ(c.quantization, "Q4_1");
  EXPECT_EQ(c.parameter_count, 134515008u);
  EXPECT_EQ(c.vocab_size, 49152);
  EXPECT_EQ(c.hidden_size, 576);
  EXPECT_EQ(c.num_layers, 30);
  EXPECT_EQ(c.num_heads, 9);
  EXPECT_EQ(c.num_kv_heads, 3);
  EXPECT_EQ(c.head_dim, 64);
  EXPECT_EQ(c.ffn_size, 1536);
  EXPECT_EQ(c.context_tokens, 8192);
  EXPECT_EQ(c.rope_theta, 100000.0f);
  EXPECT_EQ(model->vocab.pieces.size(), 49152u);
  EXPECT_EQ(model->vocab.merges.size(), 48900u);
  EXPECT_EQ(model->vocab.pre_tokenizer, "smollm");
  EXPECT_EQ(model->vocab.eos, TokenId{2});
  EXPECT_EQ(model->weights.lm_head.data, model->weights.embedding.data);
  EXPECT_EQ(model->sha256.size(), 64u);
  EXPECT_TRUE(model->warnings.empty()) << model->warnings.front();
}

}  // namespace
}  // namespace quire
