// Wire messages to validated requests ("parse, don't validate"): every rule that needs no tokenizer
// is checked here, in accept form so that NaN fails. Pure functions, bounded work; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "quire/v1/inference.pb.h"
#include "server/engine/valid_request.h"
#include "server/rpc/caller.h"

namespace quire {

// What requests are checked against; fixed once the model is loaded.
struct RequestLimits {
  std::vector<std::string> model_names;  // id first, then aliases
  int32_t vocab_size = 0;
  int32_t context_tokens = 0;
  int32_t default_max_tokens = 512;
  int64_t max_prompt_bytes = 1 << 20;
  int32_t max_outputs = 8;
  int32_t max_top_logprobs = 20;
  bool template_reads_tools = false;
  bool kv_windows = false;  // the runtime honours KvPolicy
  bool ignore_unknown_fields = false;
};

// Everything but id, tenant, cache domain, arrival and deadline. A missing seed is drawn.
absl::StatusOr<ValidRequest> ValidateGenerate(const v1::GenerateRequest& request,
                                              const RequestLimits& limits,
                                              const Caller& caller = {});

absl::StatusOr<PromptSource> ValidateTokenize(const v1::TokenizeRequest& request,
                                              const RequestLimits& limits);

// The ids of a DetokenizeRequest.
absl::StatusOr<std::vector<TokenId>> ValidateDetokenize(const v1::DetokenizeRequest& request,
                                                        const RequestLimits& limits);

absl::Status ValidateAbort(const v1::AbortRequest& request, const RequestLimits& limits);

// NOT_FOUND MODEL_NOT_FOUND unless `model` is empty or one of the names.
absl::Status CheckModelName(const std::string& model, const RequestLimits& limits);

// Characters 0x20..0x7e only.
bool IsPrintable(const std::string& text);
// 1..128 printable ASCII characters.
bool IsValidRequestId(const std::string& id);

}  // namespace quire
