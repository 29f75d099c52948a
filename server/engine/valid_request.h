// A request that passed validation: the only type that intake accepts. Plain value, handed over by
// move.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/sampling/sampling_params.h"
#include "runtime/text/prompt_encoder.h"
#include "scheduler/request.h"

namespace quire {

struct StopOptions {
  std::optional<int32_t> max_tokens;  // unset: the server's default
  int32_t min_tokens = 0;
  std::vector<std::string> stop_strings;  // each 1..256 bytes
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false, keep_stop = false;
  std::optional<int64_t> time_limit_ms;
};

struct ReplyOptions {
  bool final_only = false;  // STREAM_MODE_FINAL: text held until each output ends
  int32_t tokens_per_message = 1;
  bool text = true, tokens = false;
};

struct ValidRequest {
  RequestId id = RequestId::kNone;  // process-unique, of NextRequestId
  PromptSource prompt;
  SamplingParams sampling;  // seed is set: the client's or a drawn one
  int32_t num_sequences = 1;
  StopOptions stop;
  ReplyOptions reply;
  int32_t priority = 0;
  int32_t tenant = 0;  // index, of Tenants
  KvPolicy kv;
  bool cache_bypass = false;  // no prefix read or published
  std::string cache_salt;     // splits the tenant's cache
  CacheDomain cache_domain;   // of tenant, salt and KV policy
  MonotonicTime arrival{};
  MonotonicTime deadline = MonotonicTime::kInfinite;  // of the gRPC call
};

}  // namespace quire
