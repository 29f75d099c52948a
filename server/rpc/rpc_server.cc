#include "server/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "quire/v1/inference.grpc.pb.h"
#include "quire/v1/model.grpc.pb.h"
#include "runtime/base/status_macros.h"
#include "server/rpc/bind_error.h"
#include "server/rpc/generate_call.h"
#include "server/rpc/health_service.h"
#include "server/rpc/inference_service.h"
#include "server/rpc/model_service.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/unix_socket.h"

namespace quire {

struct RpcServer::State {
  State(const RpcServerOptions& options, std::vector<std::string> services)
      : core(options.identity, options.clock, std::move(services)) {
    core.max_calls = options.max_calls;
    core.slow_reader_ms = options.slow_reader_ms;
  }

  RpcCore core;
  v1::InferenceService::AsyncService inference;
  v1::ModelService::AsyncService model;
  HealthService health;
  std::vector<std::unique_ptr<Poller>> pollers;
  std::unique_ptr<grpc::Server> server;
  std::vector<std::string> addresses;
  bool stopped = false;
};

namespace {

constexpr int64_t kQuotaBytes = int64_t{192} << 20;
constexpr int kMillisPerMinute = 60'000;

// Linking the reflection library turns it on for every server of the process; this turns it off for
// one.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    std::erase_if(*plugins,
                  [](const auto& plugin) { return plugin->name() == "proto_server_reflection"; });
  }
};

// The settings that measurements of this gRPC release asked for; limits bind peers that keep to
// HTTP/2 only.
void Configure(const RpcServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.receive_message_bytes));
  builder.SetMaxSendMessageSize(-1);
  const std::pair<const char*, int64_t> arguments[] = {
      {GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
       1},  // none: a gzip bomb passes the size limit
      {GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_calls},
      {GRPC_ARG_MAX_METADATA_SIZE, options.metadata_bytes},
      {GRPC_ARG_KEEPALIVE_TIME_MS, 30'000},  // a vanished peer frees its blocks in 40 s
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000},
      {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
      {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000},
      {GRPC_ARG_MAX_CONNECTION_IDLE_MS, 15 * kMillisPerMinute},
      {GRPC_ARG_MAX_CONNECTION_AGE_MS, 30 * kMillisPerMinute},
      {GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, options.max_request_ms},
      {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5'000},
      {GRPC_ARG_ALLOW_REUSEPORT, 0},  // a second server on the port is an error, not a share
  };
  for (const auto& [name, value] : arguments)
    builder.AddChannelArgument(name, static_cast<int>(value));
  grpc::ResourceQuota quota("quire");
  quota.Resize(kQuotaBytes);
  builder.SetResourceQuota(quota);
  if (options.reflection) {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  } else {
    builder.SetOption(std::make_unique<WithoutReflection>());
  }
}

// A handler that answers in place, in the form that ServeUnary wants.
template <typename Request, typename Response, typename F>
auto InPlace(RpcMethod method, F answer) {
  auto handler = [answer](const Request& request, Response* response, const CallLife&,
                          const Done& done) { done(answer(request, response)); };
  return std::pair(method, handler);
}

template <typename Request, typename Response>
auto Missing(RpcMethod method) {
  return InPlace<Request, Response>(
      method, [method](const Request&, Response*) { return MethodUnsupported(method); });
}

void ServeInference(RpcCore& core, Poller& poller, v1::InferenceService::AsyncService& service) {
  using Service = v1::InferenceService::AsyncService;
  ServeGenerate(core, poller, service);
  ServeUnary(core, poller, service, &Service::RequestTokenize,
             std::pair(RpcMethod::kTokenize,
                       [&core](const v1::TokenizeRequest& request, v1::TokenizeResponse* response,
                               const CallLife& life,
                               Done done) { Tokenize(core, request, response, life, done); }));
  ServeUnary(core, poller, service, &Service::RequestDetokenize,
             std::pair(RpcMethod::kDetokenize,
                       [&core](const v1::DetokenizeRequest& request,
                               v1::DetokenizeResponse* response, const CallLife& life,
                               Done done) { Detokenize(core, request, response, life, done); }));
  ServeUnary(core, poller, service, &Service::RequestAbort,
             std::pair(RpcMethod::kAbort,
                       [&core](const v1::AbortRequest& request, v1::AbortResponse* response,
                               const CallLife& life,
                               const Done& done) { done(Abort(core, request, response, life)); }));
  ServeUnary(core, poller, service, &Service::RequestEmbed,
             Missing<v1::EmbedRequest, v1::EmbedResponse>(RpcMethod::kEmbed));
  ServeUnary(core, poller, service, &Service::RequestScore,
             Missing<v1::ScoreRequest, v1::ScoreResponse>(RpcMethod::kScore));
}

void ServeModel(RpcCore& core, Poller& poller, v1::ModelService::AsyncService& service) {
  using Service = v1::ModelService::AsyncService;
  ServeUnary(core, poller, service, &Service::RequestGetModel,
             InPlace<v1::GetModelRequest, v1::GetModelResponse>(
                 RpcMethod::kGetModel, [&core](const auto& request, auto* response) {
                   return GetModel(core, request, response);
                 }));
  ServeUnary(core, poller, service, &Service::RequestGetServerInfo,
             InPlace<v1::GetServerInfoRequest, v1::GetServerInfoResponse>(
                 RpcMethod::kGetServerInfo,
                 [&core](const auto&, auto* response) { return GetServerInfo(core, response); }));
  ServeUnary(core, poller, service, &Service::RequestGetLoad,
             InPlace<v1::GetLoadRequest, v1::GetLoadResponse>(
                 RpcMethod::kGetLoad,
                 [&core](const auto&, auto* response) { return GetLoad(core, response); }));
  RefuseStream(core, poller, service, &Service::RequestGetTokenizer, RpcMethod::kGetTokenizer);
  RefuseStream(core, poller, service, &Service::RequestSubscribeKvEvents,
               RpcMethod::kSubscribeKvEvents);
}

}  // namespace

RpcServer::RpcServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(RpcServerOptions options) {
  auto state = std::make_unique<State>(
      options, std::vector<std::string>{v1::InferenceService::service_full_name(),
                                        v1::ModelService::service_full_name()});
  for (const std::string& address : options.listen) RETURN_IF_ERROR(ClaimUnixAddress(address));
  grpc::ServerBuilder builder;
  Configure(options, builder);
  std::vector<int> ports(options.listen.size(), 0);
  for (size_t i = 0; i < ports.size(); ++i) {
    builder.AddListeningPort(options.listen[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
  builder.RegisterService(&state->inference);
  builder.RegisterService(&state->model);
  builder.RegisterService(&state->health);
  for (int32_t i = 0; i < options.pollers; ++i) {
    state->pollers.push_back(std::make_unique<Poller>(builder.AddCompletionQueue()));
  }
  state->server = builder.BuildAndStart();
  if (state->server == nullptr) {
    for (size_t i = 0; i < ports.size(); ++i) {
      if (ports[i] != 0) continue;
      const std::string why = BindError(options.listen[i]);
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", options.listen[i], why.empty() ? "" : ": ", why));
    }
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", absl::StrJoin(options.listen, ", ")));
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    std::string address = options.listen[i];
    if (address.ends_with(":0")) address.replace(address.size() - 1, 1, absl::StrCat(ports[i]));
    state->addresses.push_back(std::move(address));
  }
  for (const auto& poller : state->pollers) {
    ServeInference(state->core, *poller, state->inference);
    ServeModel(state->core, *poller, state->model);
    ServeHealthCheck(state->core.health, *poller, state->health);
    ServeHealthWatch(state->core.health, *poller, state->health);
    poller->Start();
  }
  return std::unique_ptr<RpcServer>(new RpcServer(std::move(state)));
}

void RpcServer::Attach(const Backend* backend) {
  state_->core.backend.store(backend, std::memory_order_release);
  state_->core.health.SetState(ServerState::kReady);
}

void RpcServer::Flush() {
  for (const auto& poller : state_->pollers) poller->Poke();
}

void RpcServer::Shutdown(absl::Duration grace) {
  if (std::exchange(state_->stopped, true)) return;
  state_->core.health.Close();
  state_->server->Shutdown(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(grace));
  for (const auto& poller : state_->pollers) poller->Shutdown();
}

Health& RpcServer::health() { return state_->core.health; }
const RpcStats& RpcServer::stats() const { return state_->core.stats; }
const std::vector<std::string>& RpcServer::addresses() const { return state_->addresses; }

}  // namespace quire
