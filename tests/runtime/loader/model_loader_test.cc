#include "runtime/loader/model_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/kernels/pack.h"
#include "runtime/loader/file_digest.h"
#include "tests/testing/gguf_builder.h"
#include "tests/testing/memory_file.h"

namespace quire {
namespace {

using testing::HasSubstr;

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
  GgufBuilder file =
      TinyLlama({.hidden = cols, .ffn = cols, .matrix_type = type, .embedding_type = type});
  const MemoryFile memory(file.Build());
  const absl::StatusOr<LoadedModel> model = Load(memory.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->config.quantization, TraitsOf(type).name);
  const LayerWeights& layer = model->weights.layers.at(1);
  const std::pair<std::string, const PackedMatrix*> matrices[] = {
      {"token_embd.weight", &model->weights.embedding},
      {"output.weight", &model->weights.lm_head},
      {"blk.1.attn_q.weight", &layer.wq},
      {"blk.1.attn_k.weight", &layer.wk},
      {"blk.1.attn_v.weight", &layer.wv},
      {"blk.1.attn_output.weight", &layer.wo},
      {"blk.1.ffn_gate.weight", &layer.gate},
      {"blk.1.ffn_up.weight", &layer.up},
      {"blk.1.ffn_down.weight", &layer.down}};
  for (const auto& [name, matrix] : matrices) {
    ASSERT_EQ(static_cast<uint64_t>(matrix->rows), file.tensor(name).dims[1]) << name;
    for (int32_t row = 0; row < matrix->rows; ++row) {
      EXPECT_EQ(PackedRow(*matrix, row), FileRow(file, name, static_cast<uint64_t>(row)))
          << name << " row " << row;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelLoaderTypes, testing::ValuesIn([] {
                           std::vector<DType> types;
                           for (const DTypeTraits& t : kDTypes) types.push_back(t.type);
                           return types;
                         }()),
                         [](const auto& info) { return std::string(TraitsOf(info.param).name); });

TEST(ModelLoader, PacksTheSameBytesOnAnyNumberOfThreads) {
  const MemoryFile memory(TinyLlama({.hidden = 128,
                                     .heads = 4,
                                     .vocab = 300,
                                     .matrix_type = DType::kQ4_1,
                                     .embedding_type = DType::kQ8_0})
                              .Build());
  const absl::StatusOr<LoadedModel> one = Load(memory.path(), 1), three = Load(memory.path(), 3);
  ASSERT_TRUE(one.ok() && three.ok());
  ASSERT_EQ(one->arena.used(), three->arena.used());
  const std::byte* a = one->weights.embedding.data;
  const std::byte* b = three->weights.embedding.data;
  EXPECT_EQ(std::memcmp(a, b, one->weights.bytes), 0);
}

TEST(ModelLoader, TiedHeadIsTheEmbedding) {
  const MemoryFile memory(TinyLlama({.tied = true}).Build());
  const absl::StatusOr<LoadedModel> model = Load(memory.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->weights.lm_head.data, model->weights.embedding.data);
  EXPECT_EQ(model->weights.lm_head.rows, 40);
}

TEST(ModelLoader, ReadsNormsOfEveryFloatType) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    GgufBuilder file = TinyLlama({});
    GgufBuilder::Tensor& norm = file.tensor("output_norm.weight");
    norm.type = static_cast<uint32_t>(type);
    norm.data = SeededBlocks(type, 64, 9);
    norm.dims = {64};
    std::vector<float> expected(64);
    DequantizeBlocks(type, reinterpret_cast<const std::byte*>(norm.data.data()), 64,
                     expected.data());
    const MemoryFile memory(file.Build());
    const absl::StatusOr<LoadedModel> model = Load(memory.path());
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(
        std::vector<float>(model->weights.output_norm.begin(), model->weights.output_norm.end()),
        expected);
  }
}

TEST(ModelLoader, RefusesRopeFactorsThatAreNotPositive) {
  for (const float factor : {0.0f, -1.0f, 1.0f}) {
    std::string data;
    for (int i = 0; i < 16; ++i) data += Bytes(i == 15 ? factor : 8.0f);
    const MemoryFile memory(TinyLlama({}).Add({"rope_freqs.weight", 0, {16}, data, {}}).Build());
    const absl::StatusOr<LoadedModel> model = Load(memory.path());
    EXPECT_EQ(model.ok(), factor > 0) << model.status();
    if (model.ok()) {
      EXPECT_EQ(model->weights.rope_factors.size(), 16u);
    }
  }
}

// F.G19: every type, at the first and at the last block, wherever a block keeps a scale.
TEST_P(ModelLoaderTypes, RefusesWeightsThatAreNotFinite) {
  const DTypeTraits& t = TraitsOf(GetParam());
  const auto cols = static_cast<uint32_t>(std::max(64, t.block_elements));
  const bool f32 = t.type == DType::kF32;
  const std::string bad =
      f32 ? Bytes(std::numeric_limits<float>::quiet_NaN())
          : Bytes(uint16_t{t.type == DType::kBF16 ? uint16_t{0xff80} : uint16_t{0xfc00}});
  const bool two = t.type == DType::kQ4_1 || t.type == DType::kQ5_1 || t.type == DType::kQ4_K ||
                   t.type == DType::kQ5_K;
  const size_t scale = t.type == DType::kQ6_K ? 208 : 0;
  for (const char* name : {"token_embd.weight", "blk.1.ffn_down.weight"}) {
    for (const size_t place : {scale, two ? size_t{2} : scale}) {
      for (const bool last : {false, true}) {
        GgufBuilder file = TinyLlama(
            {.hidden = cols, .ffn = cols, .matrix_type = t.type, .embedding_type = t.type});
        std::string& data = file.tensor(name).data;
        data.replace((last ? data.size() - static_cast<size_t>(t.block_bytes) : 0) + place,
                     bad.size(), bad);
        const MemoryFile memory(file.Build());
        const absl::Status status = Load(memory.path()).status();
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(status.message()),
                    HasSubstr(std::string(name) + ": found NaN or infinity"));
      }
    }
  }
}

// F.G14: the file shrinks while it is loaded.
TEST(ModelLoader, ReportsAFileThatShrinksWhileItIsLoaded) {
  const std::string bytes = TinyLlama({.hidden = 256, .layers = 8, .ffn = 512}).Build();
  for (const size_t left : {bytes.size() - 1, bytes.size() / 2, size_t{100}, size_t{0}}) {
    MemoryFile memory(bytes);
    WorkerPool pool({.threads = 2, .pin = false});
    bool cut = false;
    const absl::StatusOr<LoadedModel> model =
        LoadModel(memory.path(), {.pool = &pool, .progress = [&](size_t, size_t) {
                                    if (!std::exchange(cut, true)) memory.Resize(left);
                                  }});
    ASSERT_FALSE(model.ok()) << left;
    EXPECT_THAT(std::string(model.status().message()), HasSubstr("truncated"));
  }
}

TEST(ModelLoader, ReportsProgressUpToTheEnd) {
  const MemoryFile memory(TinyLlama({}).Build());
  WorkerPool pool({.threads = 1, .pin = false});
  size_t last = 0, total = 1;
  const auto progress = [&](size_t done, size_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
  };
  ASSERT_TRUE(LoadModel(memory.path(), {.pool = &pool, .progress = progress}).ok());
  EXPECT_EQ(last, total);
}

TEST(FileDigest, IsTheSha256OfTheFile) {
  const MemoryFile memory("abc");
  const absl::StatusOr<ModelFile> file = ModelFile::Open(memory.path());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*FileDigest(*file).Take(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

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
