#include "server/rpc/model_service.h"

#include <string>

#include "runtime/base/status_macros.h"
#include "server/rpc/validate.h"

namespace quire {
namespace {

constexpr uint32_t kApiRevision = 2;

v1::ServerState StateOf(ServerState state) {
  switch (state) {
    case ServerState::kLoading:
      return v1::SERVER_STATE_LOADING;
    case ServerState::kReady:
      return v1::SERVER_STATE_READY;
    case ServerState::kDraining:
      return v1::SERVER_STATE_DRAINING;
    case ServerState::kStalled:
      return v1::SERVER_STATE_STALLED;
    case ServerState::kFaulty:
      return v1::SERVER_STATE_FAULTY;
  }
  return v1::SERVER_STATE_UNSPECIFIED;
}

void SetLimits(const Backend& backend, v1::Limits* limits) {
  const RequestLimits& request = backend.request_limits;
  const ServiceLimits& service = backend.service_limits;
  limits->set_max_prompt_bytes(static_cast<uint32_t>(request.max_prompt_bytes));
  limits->set_max_outputs(static_cast<uint32_t>(request.max_outputs));
  limits->set_max_top_logprobs(static_cast<uint32_t>(request.max_top_logprobs));
  limits->set_default_max_tokens(static_cast<uint32_t>(service.default_max_tokens));
  limits->set_max_request_ms(static_cast<uint32_t>(service.max_request_ms));
  limits->set_max_running(static_cast<uint32_t>(service.max_running));
  limits->set_max_waiting(static_cast<uint32_t>(service.max_waiting));
  limits->set_max_waiting_tokens(static_cast<uint64_t>(service.max_waiting_tokens));
}

}  // namespace

absl::Status GetModel(RpcCore& core, const v1::GetModelRequest& request,
                      v1::GetModelResponse* response) {
  const Backend* backend = core.backend.load(std::memory_order_acquire);
  if (backend == nullptr) return Unavailable("LOADING", "the model is being loaded");
  const RequestLimits& limits = backend->request_limits;
  RETURN_IF_ERROR(CheckModelName(request.model(), limits));
  const ModelCard& card = backend->card;
  for (size_t i = 0; i < limits.model_names.size(); ++i) {
    i == 0 ? response->set_id(limits.model_names[0]) : response->add_aliases(limits.model_names[i]);
  }
  response->set_architecture(card.architecture);
  response->set_quantization(card.quantization);
  response->set_parameter_count(card.parameter_count);
  response->set_sha256(card.sha256);
  response->set_num_layers(static_cast<uint32_t>(card.num_layers));
  response->set_num_heads(static_cast<uint32_t>(card.num_heads));
  response->set_num_kv_heads(static_cast<uint32_t>(card.num_kv_heads));
  response->set_head_dim(static_cast<uint32_t>(card.head_dim));
  response->set_hidden_size(static_cast<uint32_t>(card.hidden_size));
  response->set_vocab_size(static_cast<uint32_t>(limits.vocab_size));
  response->set_trained_context_tokens(static_cast<uint32_t>(card.trained_context_tokens));
  response->set_context_tokens(static_cast<uint32_t>(card.context_tokens));
  const Tokenizer& tokenizer = *backend->tokenizer;
  if (tokenizer.bos() != TokenId::kNone)
    response->set_bos_token_id(static_cast<uint32_t>(tokenizer.bos()));
  for (const TokenId id : tokenizer.eos_ids())
    response->add_eos_token_ids(static_cast<uint32_t>(id));
  if (card.pad != TokenId::kNone) response->set_pad_token_id(static_cast<uint32_t>(card.pad));
  response->set_chat_template(card.chat_template);
  if (!card.chat_template.empty()) response->add_features(v1::FEATURE_CHAT);
  if (limits.template_reads_tools) response->add_features(v1::FEATURE_TOOLS);
  response->add_features(v1::FEATURE_PRIORITY);
  if (limits.kv_windows) response->add_features(v1::FEATURE_KV_POLICY);
  SetLimits(*backend, response->mutable_limits());
  return absl::OkStatus();
}

absl::Status GetServerInfo(RpcCore& core, v1::GetServerInfoResponse* response) {
  response->set_version(core.identity.version);
  response->set_revision(core.identity.revision);
  response->set_api_revision(kApiRevision);
  response->set_instance_id(core.identity.instance_id);
  response->set_state(StateOf(core.health.state()));
  response->set_uptime_ms(
      static_cast<uint64_t>(SecondsBetween(core.identity.started, core.clock->Now()) * 1e3));
  for (const std::string& service : core.health.services()) response->add_services(service);
  if (const Backend* backend = core.backend.load(std::memory_order_acquire); backend != nullptr) {
    response->set_isa(backend->isa);
    response->set_numeric_id(backend->numeric_id);
    response->set_threads(static_cast<uint32_t>(backend->threads));
  }
  return absl::OkStatus();
}

absl::Status GetLoad(RpcCore& core, v1::GetLoadResponse* response) {
  response->set_state(StateOf(core.health.state()));
  response->set_block_tokens(kBlockTokens);
  const Backend* backend = core.backend.load(std::memory_order_acquire);
  if (backend == nullptr) return absl::OkStatus();
  const StepStats stats = backend->engine->Stats();
  response->set_running(static_cast<uint32_t>(stats.running));
  response->set_waiting(static_cast<uint32_t>(stats.waiting));
  response->set_waiting_tokens(static_cast<uint64_t>(stats.waiting_tokens));
  response->set_used_blocks(static_cast<uint32_t>(stats.blocks_used));
  response->set_cached_blocks(static_cast<uint32_t>(stats.blocks_cached));
  response->set_total_blocks(static_cast<uint32_t>(stats.blocks_total));
  response->set_max_running(static_cast<uint32_t>(backend->service_limits.max_running));
  response->set_step(stats.step);
  response->set_free_blocks(static_cast<uint32_t>(stats.blocks_free));
  response->set_prefix_query_tokens(stats.prefix_query_tokens);
  response->set_prefix_hit_tokens(stats.prefix_hit_tokens);
  response->set_prefill_tokens_per_second(stats.rates.prefill_tokens_per_second);
  response->set_decode_steps_per_second(stats.rates.steps_per_second);
  return absl::OkStatus();
}

}  // namespace quire
