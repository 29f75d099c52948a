#include "server/cli/model_stack.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/cgroup_limits.h"
#include "runtime/base/cpu_features.h"
#include "runtime/base/error_info.h"
#include "runtime/base/read_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/hf_tokenizer.h"

namespace quire {
namespace {

constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
constexpr int64_t kScratchPerWorkerBytes = int64_t{4} << 20;

// Whatever a file or a setting is refused for is a matter of configuration to whoever starts the
// server.
absl::Status AsConfigError(const absl::Status& status) {
  const bool theirs = status.code() == absl::StatusCode::kInvalidArgument ||
                      status.code() == absl::StatusCode::kNotFound ||
                      status.code() == absl::StatusCode::kUnimplemented;
  return theirs ? absl::FailedPreconditionError(status.message()) : status;
}

// A folder stands for the one model file in it.
absl::StatusOr<std::string> FindModelFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.path().extension() == ".gguf") files.push_back(entry.path().string());
  }
  if (files.size() == 1) return files[0];
  return absl::FailedPreconditionError(absl::StrCat(
      "--model ", path, ": a folder must hold exactly one .gguf file, found ", files.size()));
}

// f32 is the reference; bf16 halves the KV traffic, int8 halves that. int16 is as large as bf16 and
// computed in integers.
KvDType ChooseKvDtype(const ServerConfig& config) {
  switch (config.kv_dtype) {
    case KvDtype::kF32:
      return KvDType::kF32;
    case KvDtype::kBf16:
      return KvDType::kBF16;
    case KvDtype::kInt16:
      return KvDType::kInt16;
    case KvDtype::kAuto:
    case KvDtype::kInt8:
      break;
  }
  return KvDType::kInt8;
}

absl::Status LoadText(const ServerConfig& config, ModelStack* stack) {
  const VocabData& vocab = stack->model.vocab;
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = MakeTokenizer(vocab);
  if (!tokenizer.ok()) return AsConfigError(tokenizer.status());
  stack->tokenizer = *std::move(tokenizer);
  std::string source = vocab.chat_template;
  if (!config.chat_template.empty()) {
    absl::StatusOr<std::string> text = ReadRegularFile(config.chat_template, kMaxTemplateBytes);
    if (!text.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("--chat-template: ", text.status().message()));
    }
    source = *std::move(text);
  }
  if (!source.empty()) {
    ChatTemplateOptions options;
    const auto spelling = [&](TokenId id) {
      return id == TokenId::kNone ? std::string() : std::string(stack->tokenizer->Spelling(id));
    };
    options.bos_token = spelling(vocab.bos);
    options.eos_token = spelling(vocab.eos);
    options.max_output_bytes = 4 * static_cast<size_t>(config.max_prompt_bytes);
    absl::StatusOr<std::unique_ptr<ChatTemplate>> chat = ChatTemplate::Compile(source, options);
    if (!chat.ok()) return AsConfigError(chat.status());
    stack->chat = *std::move(chat);
  }
  stack->encoder = std::make_unique<PromptEncoder>(stack->tokenizer.get(), stack->chat.get());
  return absl::OkStatus();
}

// What the runner will need besides weights and KV, before it exists; generous.
int64_t EstimateScratch(const ModelConfig& m, const ServerConfig& config, int32_t threads) {
  const int64_t row_floats =
      8 * int64_t{m.hidden_size} + 4 * int64_t{m.ffn_size} + 4 * int64_t{m.num_heads} * m.head_dim;
  const int64_t logits_floats = int64_t{config.max_running} * m.vocab_size * 5 / 4;
  return 4 * (config.step_tokens * row_floats + logits_floats) + threads * kScratchPerWorkerBytes;
}

absl::Status PlanMemory(const ServerConfig& config, KvDType dtype, const HostLimits& host,
                        ModelStack* stack) {
  const ModelConfig& m = stack->model.config;
  stack->limit_bytes = host.MemoryBytes();
  const ResourceNeeds needs = {
      .weights_bytes = static_cast<int64_t>(stack->model.weights.bytes),
      .scratch_bytes = EstimateScratch(m, config, stack->pool->size()),
      .kv_block_bytes = static_cast<int64_t>(CpuModelRunner::KvBlockBytes(m, dtype)),
      .context_tokens = m.context_tokens,
      .max_context = config.max_context,
      .kv_cache_bytes = config.kv_cache_bytes,
      .limit_bytes = stack->limit_bytes,
      .limit_source = host.cgroup_bytes < host.ram_bytes ? "cgroup memory limit" : "RAM"};
  ASSIGN_OR_RETURN(stack->plan, PlanResources(needs));
  return absl::OkStatus();
}

struct WarmUpData {
  std::vector<TokenId> tokens;
  std::vector<int32_t> positions;
  std::vector<KvSlot> slots;
  std::vector<BlockId> blocks;
};

// One prefill chunk and one decode step, so that no first request pays for cold pages and caches.
// Returns the slower one's seconds. The blocks it writes are free: whoever gets them overwrites
// them before reading.
double WarmUp(ModelRunner& runner) {
  const RunnerLimits limits = runner.Limits();
  const int32_t rows = std::max(1, std::min({limits.max_rows, limits.context_tokens - 1,
                                             limits.num_blocks * kBlockTokens - 1}));
  WarmUpData data;
  data.tokens.assign(static_cast<size_t>(rows) + 1, TokenId{0});
  data.positions.resize(data.tokens.size());
  std::iota(data.positions.begin(), data.positions.end(), 0);
  for (const int32_t position : data.positions) data.slots.push_back(KvSlot{position});
  for (int32_t block = 0; block < BlocksFor(rows + 1); ++block)
    data.blocks.push_back(BlockId{block});
  double slowest = 0;
  const auto run = [&](int32_t begin, int32_t count) {
    const SeqSpan seq = {.row_begin = 0,
                         .row_count = count,
                         .kv_len = begin + count,
                         .table_begin = 0,
                         .logits_begin = 0,
                         .logits_count = 1};
    StepBatch batch;
    batch.tokens = std::span(data.tokens).subspan(begin, count);
    batch.positions = std::span(data.positions).subspan(begin, count);
    batch.slots = std::span(data.slots).subspan(begin, count);
    batch.block_ids = std::span(data.blocks).first(BlocksFor(begin + count));
    batch.seqs = std::span(&seq, 1);
    batch.logits_rows = 1;
    const auto start = std::chrono::steady_clock::now();
    runner.Forward(batch);
    slowest = std::max(
        slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  };
  run(0, rows);
  run(rows, 1);
  return slowest;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelStack>> ModelStack::Load(
    const ServerConfig& config, std::function<void(size_t, size_t)> progress) {
  if (!config.isa.empty()) {
    absl::StatusOr<IsaLevel> isa = ParseIsa(config.isa);
    absl::Status set = isa.ok() ? SetIsa(*isa) : isa.status();
    if (!set.ok()) return AsConfigError(set);
  }
  auto stack = std::make_unique<ModelStack>();
  stack->isa = std::string(IsaName(ActiveIsa()));
  const HostLimits host = ReadHostLimits();
  stack->pool = std::make_unique<WorkerPool>(
      WorkerPoolOptions{.threads = config.threads > 0 ? config.threads : host.Threads()});
  ASSIGN_OR_RETURN(stack->path, FindModelFile(config.model));
  absl::StatusOr<LoadedModel> model =
      LoadModel(stack->path, {.pool = stack->pool.get(), .progress = std::move(progress)});
  if (!model.ok()) return AsConfigError(model.status());
  stack->model = *std::move(model);
  RETURN_IF_ERROR(LoadText(config, stack.get()));
  const KvDType dtype = ChooseKvDtype(config);
  stack->kv_dtype = KvDTypeName(dtype);
  RETURN_IF_ERROR(PlanMemory(config, dtype, host, stack.get()));
  const CpuModelOptions options = {.kv_dtype = dtype,
                                   .num_blocks = stack->plan.num_blocks,
                                   .max_rows = std::max(config.step_tokens, config.max_running),
                                   .max_seqs = config.max_running,
                                   .context_tokens = stack->plan.context_tokens,
                                   .pool = stack->pool.get()};
  absl::StatusOr<std::unique_ptr<CpuModelRunner>> runner =
      CpuModelRunner::Create(stack->model.config, stack->model.weights, options);
  if (!runner.ok()) return AsConfigError(runner.status());
  stack->runner = *std::move(runner);
  stack->slowest_step_s = WarmUp(*stack->runner);
  return stack;
}

}  // namespace quire
