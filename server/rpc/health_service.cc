#include "server/rpc/health_service.h"

#include <memory>
#include <optional>

namespace quire {
namespace {

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

HealthCheckResponse::ServingStatus StatusOf(std::optional<bool> serving) {
  if (!serving.has_value()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return *serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

}  // namespace

CallTask ServeHealthCheck(Health& health, Poller& poller, HealthService& service) {
  grpc::ServerContext context;
  HealthCheckRequest request;
  grpc::ServerAsyncResponseWriter<HealthCheckResponse> writer(&context);
  const bool arrived = co_await Operation([&](void* tag) {
    service.RequestCheck(&context, &request, &writer, poller.queue(), poller.queue(), tag);
  });
  if (!arrived) co_return;
  ServeHealthCheck(health, poller, service);
  const std::optional<bool> serving = health.Serving(request.service());
  HealthCheckResponse response;
  response.set_status(StatusOf(serving));
  co_await Operation([&](void* tag) {
    if (serving.has_value()) {
      writer.Finish(response, grpc::Status::OK, tag);
    } else {
      writer.FinishWithError(grpc::Status(grpc::StatusCode::NOT_FOUND, "no such service"), tag);
    }
  });
}

CallTask ServeHealthWatch(Health& health, Poller& poller, HealthService& service) {
  grpc::ServerContext context;
  HealthCheckRequest request;
  grpc::ServerAsyncWriter<HealthCheckResponse> writer(&context);
  CallEnd call_end(context);
  const bool arrived = co_await Operation([&](void* tag) {
    service.RequestWatch(&context, &request, &writer, poller.queue(), poller.queue(), tag);
  });
  if (!arrived) co_return;
  ServeHealthWatch(health, poller, service);
  const auto signal = std::make_shared<Signal>(poller);
  health.AddWatcher(&poller, signal);
  bool gone = false;
  call_end.OnCancel([&] {
    gone = true;
    signal->Raise();
    poller.Poke();
  });
  std::optional<HealthCheckResponse::ServingStatus> told;
  while (!gone && !health.closed()) {
    const HealthCheckResponse::ServingStatus now = StatusOf(health.Serving(request.service()));
    if (told == now) {
      co_await *signal;
      continue;
    }
    HealthCheckResponse response;
    response.set_status(now);
    told = now;
    const bool written = co_await Operation([&](void* tag) { writer.Write(response, tag); });
    if (!written) gone = true;
  }
  health.RemoveWatcher(signal.get());
  const grpc::Status status(gone ? grpc::StatusCode::CANCELLED : grpc::StatusCode::UNAVAILABLE,
                            gone ? "cancelled" : "the server stops");
  co_await Operation([&](void* tag) { writer.Finish(status, tag); });
  co_await call_end;
}

}  // namespace quire
