// What the services work with once the model is loaded: the other rooms, and facts about the model.
// Made by the composition root; everything it points to outlives the RpcServer. Immutable, any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/text/prompt_encoder.h"
#include "runtime/text/tokenizer.h"
#include "server/delivery/delivery.h"
#include "server/engine/cache_domains.h"
#include "server/engine/engine.h"
#include "server/engine/inbox.h"
#include "server/engine/intake.h"
#include "server/engine/tenants.h"
#include "server/rpc/validate.h"

namespace quire {

// What GetModel tells besides limits.
struct ModelCard {
  std::string architecture, quantization, sha256, chat_template;
  uint64_t parameter_count = 0;
  int32_t num_layers = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0, hidden_size = 0;
  int32_t trained_context_tokens = 0;
  int32_t context_tokens = 0;  // effective: the least of the model's, --max-context and the pool
  TokenId pad = TokenId::kNone;
};

// The rest of GetModel's Limits.
struct ServiceLimits {
  int32_t default_max_tokens = 512;
  int64_t max_request_ms = 600'000;
  int32_t max_running = 64, max_waiting = 256;
  int64_t max_waiting_tokens = 262'144;
};

struct Backend {
  Intake* intake = nullptr;
  Inbox* inbox = nullptr;
  Delivery* delivery = nullptr;
  const Engine* engine = nullptr;
  const PromptEncoder* encoder = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const Clock* clock = nullptr;
  Tenants* tenants = nullptr;
  const CacheDomains* domains = nullptr;
  RequestLogger log{};  // of requests that delivery never sees; optional
  RequestLimits request_limits;
  ServiceLimits service_limits;
  ModelCard card;
  std::string isa, numeric_id;  // instruction set; equal ids promise equal bits
  int32_t threads = 0;
};

}  // namespace quire
