// grpc.health.v1 on our own pollers: Check and Watch. Not counted and not capped, as probes must
// get through.
#pragma once

#include "compat/grpc/health/v1/health_service.grpc.pb.h"
#include "server/rpc/call_task.h"
#include "server/rpc/health.h"

namespace quire {

using HealthService = ::grpc::health::v1::Health::AsyncService;

// Each waits for the next call and serves it; another one waits from then on. Before shutdown only.
CallTask ServeHealthCheck(Health& health, Poller& poller, HealthService& service);
CallTask ServeHealthWatch(Health& health, Poller& poller, HealthService& service);

}  // namespace quire
