#include "tests/fuzz/gguf_target.h"

#include <cmath>

#include "absl/log/check.h"
#include "runtime/loader/model_header.h"
#include "runtime/loader/model_loader.h"
#include "tests/testing/memory_file.h"

namespace quire {
namespace {

void CheckConfig(const ModelConfig& c, const VocabData& v) {
  CHECK(c.num_layers >= 1 && c.num_layers <= 1024);
  CHECK(c.hidden_size >= 32 && c.hidden_size % 32 == 0 && c.ffn_size % 32 == 0);
  CHECK(c.num_kv_heads >= 1 && c.num_heads % c.num_kv_heads == 0);
  CHECK(c.head_dim >= 32 && c.head_dim <= 256 && c.head_dim % 2 == 0);
  CHECK(c.rope_dims >= 2 && c.rope_dims <= c.head_dim && c.rope_dims % 2 == 0);
  CHECK(c.rms_eps > 0 && std::isfinite(c.rms_eps) && c.rope_theta >= 1 &&
        std::isfinite(c.rope_theta));
  CHECK(c.rope_scale > 0 && std::isfinite(c.rope_scale) && c.attention_scale > 0 &&
        std::isfinite(c.attention_scale));
  CHECK(c.context_tokens >= 1);
  CHECK_EQ(static_cast<size_t>(c.vocab_size), v.pieces.size());
  CHECK_EQ(v.pieces.size(), v.kinds.size());
  for (const TokenId id : {v.bos, v.eos, v.eot, v.pad, v.unknown}) {
    CHECK(static_cast<int32_t>(id) >= -1 && static_cast<int32_t>(id) < c.vocab_size);
  }
}

void CheckMatrix(const PackedMatrix& m, int32_t rows, int32_t cols) {
  CHECK(m.data != nullptr);
  CHECK(m.rows == rows && m.cols == cols);
  std::vector<float> row(static_cast<size_t>(cols));
  for (const int32_t r : {0, rows - 1}) {
    UnpackRow(m, r, row.data());
    for (const float x : row) CHECK(std::isfinite(x));
  }
}

void CheckWeights(const ModelConfig& c, const ModelWeights& w) {
  CHECK_EQ(w.layers.size(), static_cast<size_t>(c.num_layers));
  CheckMatrix(w.embedding, c.vocab_size, c.hidden_size);
  CheckMatrix(w.lm_head, c.vocab_size, c.hidden_size);
  CHECK_EQ(w.output_norm.size(), static_cast<size_t>(c.hidden_size));
  for (const LayerWeights& l : w.layers) {
    CheckMatrix(l.wq, c.num_heads * c.head_dim, c.hidden_size);
    CheckMatrix(l.wk, c.num_kv_heads * c.head_dim, c.hidden_size);
    CheckMatrix(l.wv, c.num_kv_heads * c.head_dim, c.hidden_size);
    CheckMatrix(l.wo, c.hidden_size, c.num_heads * c.head_dim);
    CheckMatrix(l.gate, c.ffn_size, c.hidden_size);
    CheckMatrix(l.up, c.ffn_size, c.hidden_size);
    CheckMatrix(l.down, c.hidden_size, c.ffn_size);
  }
}

}  // namespace

absl::Status LoadAndCheck(const std::string& path) {
  static WorkerPool& pool = *new WorkerPool({.threads = 1, .pin = false});
  const absl::StatusOr<LoadedModel> model = LoadModel(path, {.pool = &pool, .progress = nullptr});
  if (!model.ok()) {
    CHECK_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << model.status();
    CHECK(!model.status().message().empty());
    return model.status();
  }
  CheckConfig(model->config, model->vocab);
  CheckWeights(model->config, model->weights);
  return absl::OkStatus();
}

absl::Status ReadHeaderAndCheck(const std::string& path) {
  const absl::StatusOr<ModelFile> file = ModelFile::Open(path);
  CHECK_OK(file.status());
  const auto header = ReadModelHeader(*file);
  if (!header.ok()) {
    CHECK_EQ(header.status().code(), absl::StatusCode::kInvalidArgument) << header.status();
    return header.status();
  }
  CheckConfig((*header)->config, (*header)->vocab);
  for (const WeightPlan::Entry& e : (*header)->plan.entries) {
    CHECK(e.tensor->begin <= file->size() && e.tensor->bytes <= file->size() - e.tensor->begin);
  }
  return absl::OkStatus();
}

}  // namespace quire

// The entry point of libFuzzer and AFL++; the replay test calls it for every file of the corpus.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const quire::MemoryFile file({reinterpret_cast<const char*>(data), size});
  (void)quire::LoadAndCheck(file.path());
  return 0;
}
