// Measures llama.cpp on the windows of the quality test and prints the result as JSON (the table to
// standard error). Not part of the build: quality/measure_llama compiles it, with -include llama.h.
//   llama_quality MODEL.gguf FOLDER_OF_REFERENCE THREADS
#include <cstdio>
#include <cstdlib>

#include "nlohmann/json.hpp"
#include "tests/golden/quality_reference.h"

namespace quire {
namespace {

QualitySum Measure(llama_context* context, const QualityReference& reference,
                   const QualityWindow& window, int32_t vocab) {
  const auto count = static_cast<int32_t>(window.ids.size());
  llama_batch batch = llama_batch_init(count, 0, 1);
  batch.n_tokens = count;
  for (int32_t i = 0; i < count; ++i) {
    batch.token[i] = window.ids[i];
    batch.pos[i] = i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  llama_memory_clear(llama_get_memory(context), true);
  if (llama_decode(context, batch) != 0) {
    std::fprintf(stderr, "llama_decode failed\n");
    std::exit(1);
  }
  QualitySum sum;
  for (int32_t row = 0; row + 1 < count; ++row) {
    const float* logits = llama_get_logits_ith(context, row);
    reference.AddRow(window, row, {logits, static_cast<size_t>(vocab)}, sum);
  }
  llama_batch_free(batch);
  return sum;
}

int Run(const char* path, const char* folder, int32_t threads) {
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
      },
      nullptr);
  const QualityReference reference(folder);
  llama_model* model = llama_model_load_from_file(path, llama_model_default_params());
  if (model == nullptr) return 1;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = 512;
  params.n_threads = params.n_threads_batch = threads;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.type_k = params.type_v = GGML_TYPE_F16;
  llama_context* context = llama_init_from_model(model, params);
  if (context == nullptr) return 1;

  const int32_t vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
  nlohmann::ordered_json json = {{"system", llama_print_system_info()},
                                 {"settings", "f16 KV, flash attention, one batch per window"},
                                 {"model_sha256", reference.sha256()}};
  QualitySum all;
  std::vector<QualitySum> sums;
  for (const QualityWindow& window : reference.windows()) {
    sums.push_back(Measure(context, reference, window, vocab));
    all.Add(sums.back());
    json["windows"].push_back({{"name", window.name},
                               {"kl", sums.back().MeanKl()},
                               {"perplexity", sums.back().Perplexity()}});
  }
  json["kl"] = all.MeanKl();
  json["perplexity"] = all.Perplexity();
  std::fputs(QualityTable(reference, sums).c_str(), stderr);
  std::puts(json.dump(1).c_str());
  llama_free(context);
  llama_model_free(model);
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: llama_quality MODEL.gguf FOLDER_OF_REFERENCE THREADS\n");
    return 64;
  }
  return quire::Run(argv[1], argv[2], std::atoi(argv[3]));
}
