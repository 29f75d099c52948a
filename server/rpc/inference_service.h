// The unary methods of quire.v1.InferenceService: what answers each. Poller threads; nothing here
// blocks or tokenizes, such work goes to the intake thread.
#pragma once

#include "quire/v1/inference.pb.h"
#include "server/rpc/call_context.h"
#include "server/rpc/call_task.h"
#include "server/rpc/rpc_core.h"

namespace quire {

void Tokenize(RpcCore& core, const v1::TokenizeRequest& request, v1::TokenizeResponse* response,
              const CallLife& life, Done done);
void Detokenize(RpcCore& core, const v1::DetokenizeRequest& request,
                v1::DetokenizeResponse* response, const CallLife& life, Done done);
absl::Status Abort(RpcCore& core, const v1::AbortRequest& request, v1::AbortResponse* response,
                   const CallLife& life);

}  // namespace quire
