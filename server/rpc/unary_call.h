// One implementation of every unary RPC. A method is the pair (how gRPC is asked for the next call,
// what answers it); calls of the method follow each other on a poller, each asking for the next
// when it arrives.
#pragma once

#include <grpcpp/support/async_unary_call.h>

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"
#include "server/rpc/call_context.h"
#include "server/rpc/call_task.h"
#include "server/rpc/rpc_core.h"
#include "server/rpc/status_map.h"

namespace quire {

template <typename Service, typename Request, typename Response>
using RequestUnary = void (Service::*)(grpc::ServerContext*, Request*,
                                       grpc::ServerAsyncResponseWriter<Response>*,
                                       grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*);

// The trailer that tells gRPC clients' own retry policy when to come back.
inline void AddPushback(const absl::Status& status, grpc::ServerContext* context) {
  const int64_t delay = GetErrorInfo(status).retry_delay_ms;
  if (delay >= 0) context->AddTrailingMetadata("grpc-retry-pushback-ms", absl::StrCat(delay));
}

// `handler(request, response, life, done)` answers through done, from any thread; it must not keep
// references. To answer in place: call done before returning.
template <typename Service, typename Base, typename Request, typename Response, typename Handler>
CallTask ServeUnary(RpcCore& core, Poller& poller, Service& service,
                    RequestUnary<Base, Request, Response> request_call,
                    std::pair<RpcMethod, Handler> method) {
  grpc::ServerContext context;
  Request request;
  grpc::ServerAsyncResponseWriter<Response> writer(&context);
  CallEnd end(context);
  const bool arrived = co_await Operation([&](void* tag) {
    (service.*request_call)(&context, &request, &writer, poller.queue(), poller.queue(), tag);
  });
  if (!arrived) co_return;  // the server shuts down
  ServeUnary(core, poller, service, request_call, method);

  CallLife life;
  CallContext read = ReadCallContext(context, *core.clock);
  life.deadline = read.deadline;
  life.caller = std::move(read.caller);
  end.OnCancel([flag = life.cancelled] { flag->store(true); });
  Response response;
  absl::Status status;
  {
    CallSlot slot(core);
    status = slot.status();
    if (status.ok()) {
      status = co_await Answer(poller, [&](Done done) {
        try {
          method.second(request, &response, life, done);
        } catch (const std::exception&) {  // an alarm: nothing of ours throws
          done(absl::InternalError("an exception escaped"));
        }
      });
    }
  }
  const grpc::Status wire = ToGrpcStatus(status);
  core.stats.Count(method.first, wire.error_code());
  AddPushback(status, &context);
  co_await Operation([&](void* tag) {
    if (wire.ok()) {
      writer.Finish(response, wire, tag);
    } else {
      writer.FinishWithError(wire, tag);
    }
  });
  co_await end;
}

// Refuses a server-streaming method of the API that this build lacks.
template <typename Service, typename Base, typename Request, typename Response>
CallTask RefuseStream(RpcCore& core, Poller& poller, Service& service,
                      void (Base::*request_call)(grpc::ServerContext*, Request*,
                                                 grpc::ServerAsyncWriter<Response>*,
                                                 grpc::CompletionQueue*,
                                                 grpc::ServerCompletionQueue*, void*),
                      RpcMethod method) {
  grpc::ServerContext context;
  Request request;
  grpc::ServerAsyncWriter<Response> writer(&context);
  const bool arrived = co_await Operation([&](void* tag) {
    (service.*request_call)(&context, &request, &writer, poller.queue(), poller.queue(), tag);
  });
  if (!arrived) co_return;
  RefuseStream(core, poller, service, request_call, method);
  const grpc::Status wire = ToGrpcStatus(MethodUnsupported(method));
  core.stats.Count(method, wire.error_code());
  co_await Operation([&](void* tag) { writer.Finish(wire, tag); });
}

}  // namespace quire
