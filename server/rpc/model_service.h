// The unary methods of quire.v1.ModelService: what answers each. They read snapshots and answer in
// place, while loading and draining too. Poller threads.
#pragma once

#include "absl/status/status.h"
#include "quire/v1/model.pb.h"
#include "server/rpc/rpc_core.h"

namespace quire {

absl::Status GetModel(RpcCore& core, const v1::GetModelRequest& request,
                      v1::GetModelResponse* response);
absl::Status GetServerInfo(RpcCore& core, v1::GetServerInfoResponse* response);
absl::Status GetLoad(RpcCore& core, v1::GetLoadResponse* response);

}  // namespace quire
