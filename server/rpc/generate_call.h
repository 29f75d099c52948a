// The Generate RPC: one coroutine per call, from its arrival to its status.
#pragma once

#include "quire/v1/inference.grpc.pb.h"
#include "server/rpc/call_task.h"
#include "server/rpc/rpc_core.h"

namespace quire {

// Waits for the next call and serves it; another one waits from then on. Before shutdown only.
CallTask ServeGenerate(RpcCore& core, Poller& poller, v1::InferenceService::AsyncService& service);

}  // namespace quire
