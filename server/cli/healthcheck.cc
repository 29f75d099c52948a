#include <grpcpp/create_channel.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "compat/grpc/health/v1/health_service.grpc.pb.h"
#include "server/cli/commands.h"

namespace quire {

// A new connection each time: a listener that no longer accepts must not look healthy.
int RunHealthcheck(const Args& args) {
  CLI::App app("Ask a server whether it serves: exit 0 if so, 1 for anything else.",
               "quire healthcheck");
  std::string addr = "127.0.0.1:50051", service, timeout_text = "1s";
  app.add_option("--addr", addr, "server: host:port or unix:PATH")->capture_default_str();
  app.add_option("--service", service, "full name of a service, or quire.live [the whole server]");
  app.add_option("--timeout", timeout_text, "how long to wait, as 500ms or 2s")
      ->capture_default_str();
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitFailed;
  }
  absl::Duration timeout;
  if (!absl::ParseDuration(timeout_text, &timeout))
    return Fail(kExitFailed, "--timeout: wanted a time like 500ms or 2s");
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto channel =
      grpc::CreateCustomChannel(addr, grpc::InsecureChannelCredentials(), arguments);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status status =
      grpc::health::v1::Health::NewStub(channel)->Check(&context, request, &response);
  if (!status.ok()) {
    const bool unknown = status.error_code() == grpc::StatusCode::NOT_FOUND;
    std::printf(unknown ? "SERVICE_UNKNOWN\n" : "UNREACHABLE\n");
    std::fprintf(stderr, "quire: %s\n", status.error_message().c_str());
    return kExitFailed;
  }
  const bool serving = response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
  std::printf(serving ? "SERVING\n" : "NOT_SERVING\n");
  return serving ? kExitOk : kExitFailed;
}

}  // namespace quire
