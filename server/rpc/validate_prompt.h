// The part of validation that reads a Prompt; shared by every RPC that takes one. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "quire/v1/inference.pb.h"
#include "runtime/text/prompt_encoder.h"
#include "server/rpc/validate.h"
#include "server/rpc/violations.h"

namespace quire {

// Null: the request has no prompt, a violation. The result counts only if no violation was added.
PromptSource ReadPrompt(const v1::Prompt* prompt, const RequestLimits& limits,
                        Violations* violations);

// Ids below the vocabulary's size, at most `max_count`; `field` is the path of the message.
std::vector<TokenId> ReadTokenIds(const v1::TokenIds& tokens, const std::string& field,
                                  int max_count, const RequestLimits& limits,
                                  Violations* violations);

}  // namespace quire
