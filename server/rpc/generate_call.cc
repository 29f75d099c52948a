#include "server/rpc/generate_call.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/rpc/call_context.h"
#include "server/rpc/generate_sink.h"
#include "server/rpc/reader_watch.h"
#include "server/rpc/status_map.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/validate.h"

namespace quire {
namespace {

// A request that delivery will end: from here on its sink gets exactly one OnEnd.
struct Accepted {
  RequestId id = RequestId::kNone;
  LiveRequests::Name name;  // the one that clients know
  MonotonicTime deadline = MonotonicTime::kInfinite;
  Inbox* inbox = nullptr;
  std::shared_ptr<GenerateSink> sink;
};

StreamSpec SpecOf(const ValidRequest& request, const LiveRequests::Name& name) {
  return {.id = request.id,
          .name = name.id,
          .tenant = name.tenant,
          .num_sequences = request.num_sequences,
          .seed = request.sampling.seed,
          .final_only = request.reply.final_only,
          .tokens_per_message = request.reply.tokens_per_message,
          .text = request.reply.text,
          .tokens = request.reply.tokens,
          .logprobs = request.sampling.logprobs,
          .stop_strings = request.stop.stop_strings,
          .stop_token_ids = request.stop.stop_token_ids,
          .keep_stop = request.stop.keep_stop,
          .min_tokens = request.stop.min_tokens,
          .arrival = request.arrival};
}

absl::StatusOr<ValidRequest> Read(const Backend& backend, const CallContext& call,
                                  const v1::GenerateRequest& request, LiveRequests::Name* name) {
  RETURN_IF_ERROR(call.caller.status());
  const Caller& caller = *call.caller;
  ASSIGN_OR_RETURN(ValidRequest valid, ValidateGenerate(request, backend.request_limits, caller));
  name->tenant = caller.tenant;
  name->id = request.request_id().empty() ? call.request_id : request.request_id();
  if (!name->id.empty() && !IsValidRequestId(name->id)) {
    return InvalidField("x-request-id", "wanted 1..128 printable ASCII characters");
  }
  valid.id = NextRequestId();
  valid.tenant = backend.tenants->Index(caller.tenant);
  valid.cache_domain = backend.domains->Of(caller.tenant, valid.cache_salt, valid.kv);
  valid.arrival = call.arrival;
  valid.deadline = call.deadline;
  return valid;
}

void LogRefused(const Backend& backend, const LiveRequests::Name& name,
                const absl::Status& status) {
  if (!backend.log) return;
  RequestRecord record = {.request_id = name.id, .tenant = name.tenant, .code = status.code()};
  // A name that is not valid is not repeated.
  if (!record.request_id.empty() && !IsValidRequestId(record.request_id)) record.request_id = "";
  record.reason = GetErrorInfo(status).reason;
  backend.log(record);
}

absl::StatusOr<Accepted> Accept(RpcCore& core, Poller& poller, const CallContext& call,
                                const v1::GenerateRequest& request) {
  ASSIGN_OR_RETURN(const Backend* backend, core.Ready());
  Accepted out;
  absl::StatusOr<ValidRequest> valid = Read(*backend, call, request, &out.name);
  if (valid.ok()) {
    if (out.name.id.empty()) {
      out.name.id = absl::StrCat(core.identity.instance_id, "-", static_cast<uint64_t>(valid->id));
    }
    if (absl::Status taken = core.live.Add(out.name, valid->id); !taken.ok()) valid = taken;
  }
  if (!valid.ok()) {
    backend->intake->CountRefused(valid.status());
    LogRefused(*backend, out.name, valid.status());
    return valid.status();
  }
  out.id = valid->id;
  out.deadline = valid->deadline;
  out.inbox = backend->inbox;
  out.sink = std::make_shared<GenerateSink>(poller);
  backend->delivery->Open(SpecOf(*valid, out.name), out.sink);
  if (absl::Status refused = backend->intake->Submit(*std::move(valid)); !refused.ok()) {
    core.live.Remove(out.name);
    if (backend->delivery->Discard(out.id)) LogRefused(*backend, out.name, refused);
    return refused;
  }
  return out;
}

// All that a call holds; lives in the coroutine's frame, so as long as gRPC may point into it.
struct GenerateCall {
  explicit GenerateCall(RpcCore& c) : core(c) {}

  // OK: from now on the sink brings messages and one end.
  absl::Status Start(Poller& poller) {
    ASSIGN_OR_RETURN(accepted,
                     Accept(core, poller, ReadCallContext(context, *core.clock), request));
    watch->request_ended = accepted.sink->ended();
    watch->context = &context;
    watch->patience_ms = core.slow_reader_ms;
    WatchReader(poller, watch);
    end.OnCancel([this] {  // also when the deadline passes: gRPC tells no difference
      const bool late = core.clock->Now() >= accepted.deadline;
      accepted.inbox->Abort(accepted.id, late ? FinishReason::kDeadline : FinishReason::kCancelled);
    });
    return absl::OkStatus();
  }

  std::optional<v1::GenerateResponse> TakeMessage() {
    std::optional<v1::GenerateResponse> message = accepted.sink->Take();
    if (message.has_value() && !std::exchange(headers_set, true)) {
      message->set_request_id(accepted.name.id);
      context.AddInitialMetadata("quire-request-id", accepted.name.id);
      context.AddInitialMetadata("quire-instance", core.identity.instance_id);
    }
    return message;
  }

  RpcCore& core;
  grpc::ServerContext context;
  v1::GenerateRequest request;
  grpc::ServerAsyncWriter<v1::GenerateResponse> writer{&context};
  CallEnd end{context};
  Accepted accepted;
  std::shared_ptr<ReaderWatch> watch = std::make_shared<ReaderWatch>();
  bool headers_set = false;
};

}  // namespace

CallTask ServeGenerate(RpcCore& core, Poller& poller, v1::InferenceService::AsyncService& service) {
  GenerateCall call(core);
  const bool arrived = co_await Operation([&](void* tag) {
    service.RequestGenerate(&call.context, &call.request, &call.writer, poller.queue(),
                            poller.queue(), tag);
  });
  if (!arrived) co_return;  // the server shuts down
  ServeGenerate(core, poller, service);

  const CallSlot slot(core);
  absl::Status status = slot.status();
  if (status.ok()) status = call.Start(poller);
  std::optional<v1::GenerateResponse> last;  // goes out together with the status
  bool connected = true;
  if (status.ok()) {
    GenerateSink& sink = *call.accepted.sink;
    while (true) {
      std::optional<v1::GenerateResponse> message = call.TakeMessage();
      if (const std::optional<absl::Status> end = sink.end(); end.has_value()) {
        status = *end;
        last = std::move(message);
        break;
      }
      if (!message.has_value()) {
        co_await sink.news();
        continue;
      }
      if (connected) {
        connected = co_await Operation([&](void* tag) { call.writer.Write(*message, tag); });
      }
      sink.Written();
      ++call.watch->writes;
    }
    core.live.Remove(call.accepted.name);
  }
  const grpc::Status wire = ToGrpcStatus(status);
  core.stats.Count(RpcMethod::kGenerate, wire.error_code());
  AddPushback(status, &call.context);
  co_await Operation([&](void* tag) {
    if (last.has_value() && connected) {
      call.writer.WriteAndFinish(*last, grpc::WriteOptions(), wire, tag);
    } else {
      call.writer.Finish(wire, tag);
    }
  });
  call.watch->End();
  co_await call.end;
}

}  // namespace quire
