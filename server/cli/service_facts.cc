#include "server/cli/service_facts.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/cli/counted.h"
#include "server/cli/version.h"

namespace quire {
namespace {

// Results are promised to be equal bit for bit where this is equal.
std::string NumericId(const ModelStack& stack) {
  return absl::StrCat(kVersion, "-", kRevision, "-", stack.isa, "-", stack.kv_dtype);
}

}  // namespace

SchedulerOptions SchedulerOptionsOf(const ServerConfig& config, const ModelStack& stack) {
  SchedulerOptions options;
  options.context_tokens = stack.plan.context_tokens;
  options.step_tokens = config.step_tokens;
  options.max_running = config.max_running;
  options.max_waiting = config.max_waiting;
  options.max_waiting_tokens = config.max_waiting_tokens;
  options.max_queue_ns = config.max_queue_ms * 1'000'000;
  options.prefix_cache = config.prefix_cache;
  options.target_itl_ns = config.target_itl_ms * 1'000'000;
  options.queue.fcfs = config.fcfs;
  options.queue.ageing_ns = config.ageing_ms * 1'000'000;
  options.queue.tenant_weights.push_back(1);  // index 0: calls without a tenant
  for (const TenantWeight& tenant : config.tenant_weights) {
    options.queue.tenant_weights.push_back(tenant.weight);
  }
  return options;
}

IntakeOptions IntakeOptionsOf(const ServerConfig& config, const ModelStack& stack) {
  IntakeOptions options;
  options.capacity = {.context_tokens = stack.plan.context_tokens,
                      .num_blocks = stack.plan.num_blocks};
  options.vocab_size = stack.model.config.vocab_size;
  options.eos_ids = stack.tokenizer->eos_ids();
  options.default_max_tokens = config.default_max_tokens;
  options.max_request_ms = config.max_request_ms;
  options.max_running = config.max_running;
  options.max_queue_ms = config.max_queue_ms;
  options.deadline_admission = config.deadline_admission;
  return options;
}

MetricsInfo MetricsInfoOf(const ServerConfig& config, const ModelStack& stack) {
  const ModelConfig& m = stack.model.config;
  MetricsInfo info;
  info.version = kVersion;
  info.revision = kRevision;
  info.isa = stack.isa;
  info.numeric_id = NumericId(stack);
  info.model = ModelNames(config, stack)[0];
  info.architecture = m.architecture;
  info.quantization = m.quantization;
  info.kv_dtype = stack.kv_dtype;
  info.context_tokens = stack.plan.effective_context_tokens();
  info.num_blocks = stack.plan.num_blocks;
  info.threads = stack.pool->size();
  info.weights_bytes = static_cast<int64_t>(stack.model.weights.bytes);
  info.kv_bytes = static_cast<int64_t>(stack.runner->kv_bytes());
  info.scratch_bytes = static_cast<int64_t>(stack.runner->scratch_bytes());
  info.memory_limit_bytes = stack.limit_bytes;
  return info;
}

Backend BackendOf(const ServerConfig& config, const ModelStack& stack) {
  const ModelConfig& m = stack.model.config;
  Backend backend;
  backend.encoder = stack.encoder.get();
  backend.tokenizer = stack.tokenizer.get();
  backend.request_limits = {
      .model_names = ModelNames(config, stack),
      .vocab_size = m.vocab_size,
      .context_tokens = stack.plan.context_tokens,
      .default_max_tokens = config.default_max_tokens,
      .max_prompt_bytes = config.max_prompt_bytes,
      .max_outputs = std::min(config.max_outputs, config.max_running),
      .max_top_logprobs = config.max_top_logprobs,
      .template_reads_tools = stack.chat != nullptr && stack.chat->reads_tools(),
      .kv_windows = true,
      .ignore_unknown_fields = config.ignore_unknown_fields};
  backend.service_limits = {.default_max_tokens = config.default_max_tokens,
                            .max_request_ms = config.max_request_ms,
                            .max_running = config.max_running,
                            .max_waiting = config.max_waiting,
                            .max_waiting_tokens = config.max_waiting_tokens};
  backend.card = {.architecture = m.architecture,
                  .quantization = m.quantization,
                  .sha256 = stack.model.sha256,
                  .chat_template = stack.chat == nullptr ? "" : stack.chat->source(),
                  .parameter_count = m.parameter_count,
                  .num_layers = m.num_layers,
                  .num_heads = m.num_heads,
                  .num_kv_heads = m.num_kv_heads,
                  .head_dim = m.head_dim,
                  .hidden_size = m.hidden_size,
                  .trained_context_tokens = m.context_tokens,
                  .context_tokens = stack.plan.effective_context_tokens(),
                  .pad = stack.model.vocab.pad};
  backend.isa = stack.isa;
  backend.numeric_id = NumericId(stack);
  backend.threads = stack.pool->size();
  return backend;
}

StreamStats InitialStats(const ServerConfig& config) {
  using S = StreamStats;
  constexpr std::array<LatencyCounts S::*, kLatencyFamilies.size()> kFields = {
      &S::time_to_first_token,
      &S::inter_token,
      &S::time_per_output_token,
      &S::request,
      &S::intake,
      &S::queue,
      &S::prefill,
      &S::decode};
  StreamStats stats;
  for (const LatencyBuckets& buckets : config.metrics_buckets) {
    const auto family = std::ranges::find(kLatencyFamilies, buckets.family);
    CHECK(family != kLatencyFamilies.end());
    stats.*kFields[static_cast<size_t>(family - kLatencyFamilies.begin())] =
        LatencyCounts(buckets.bounds);
  }
  return stats;
}

std::vector<std::string> TenantNames(const ServerConfig& config) {
  std::vector<std::string> names;
  for (const TenantWeight& tenant : config.tenant_weights) names.push_back(tenant.name);
  return names;
}

std::vector<CallCount> CallCounts(const RpcStats& stats) {
  std::vector<CallCount> counts;
  for (size_t method = 0; method < kRpcMethodNames.size(); ++method) {
    for (size_t code = 0; code < kRpcCodeNames.size(); ++code) {
      counts.push_back({.api = "quire",
                        .method = std::string(kRpcMethodNames[method]),
                        .code = std::string(kRpcCodeNames[code]),
                        .count = stats.calls(method, code)});
    }
  }
  return counts;
}

std::vector<std::string> ModelNames(const ServerConfig& config, const ModelStack& stack) {
  std::vector<std::string> names;
  for (const std::string& name :
       {config.model_name, std::filesystem::path(stack.path).stem().string(),
        stack.model.config.name}) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  if (names.empty()) names.push_back("model");
  return names;
}

std::string DescribeStack(const ServerConfig& config, const ModelStack& stack) {
  const ModelConfig& m = stack.model.config;
  return absl::StrFormat(
      "%s: %s, %.1f M parameters, %s; context %d; %s, %s, KV %s\n%s", ModelNames(config, stack)[0],
      m.architecture, static_cast<double>(m.parameter_count) * 1e-6, m.quantization,
      stack.plan.effective_context_tokens(), Counted(stack.pool->size(), "thread"), stack.isa,
      stack.kv_dtype, stack.plan.text);
}

}  // namespace quire
