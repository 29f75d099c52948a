// What each room is told about the configuration and the loaded model: plain translations, no
// decisions. Pure.
#pragma once

#include <string>
#include <vector>

#include "server/cli/model_stack.h"
#include "server/config/server_config.h"
#include "server/delivery/stream_stats.h"
#include "server/engine/engine.h"
#include "server/engine/intake.h"
#include "server/metrics/metrics.h"
#include "server/rpc/backend.h"
#include "server/rpc/rpc_stats.h"

namespace quire {

SchedulerOptions SchedulerOptionsOf(const ServerConfig& config, const ModelStack& stack);
IntakeOptions IntakeOptionsOf(const ServerConfig& config, const ModelStack& stack);
MetricsInfo MetricsInfoOf(const ServerConfig& config, const ModelStack& stack);
Backend BackendOf(const ServerConfig& config, const ModelStack& stack);  // without the other rooms
// Zeros, with the histograms' bounds; `config` outlives all copies.
StreamStats InitialStats(const ServerConfig& config);
std::vector<CallCount> CallCounts(const RpcStats& stats);
// Of the tenants that have weights, in the order of their indices, which begin with 1.
std::vector<std::string> TenantNames(const ServerConfig& config);
// The id of the model, then its other names.
std::vector<std::string> ModelNames(const ServerConfig& config, const ModelStack& stack);
// For people, a few lines.
std::string DescribeStack(const ServerConfig& config, const ModelStack& stack);

}  // namespace quire
