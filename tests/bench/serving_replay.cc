// A gRPC client that sends the requests of a trace to a running server at their times and keeps
// the same books as a simulation of it. One thread on one completion queue. The last line of
// standard output is one JSON object. By hand, or through simulate_accuracy.py.
#include <grpcpp/alarm.h>
#include <grpcpp/create_channel.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/log/check.h"
#include "quire/v1/inference.grpc.pb.h"
#include "runtime/base/read_file.h"
#include "scheduler/simulate/request_book.h"
#include "scheduler/simulate/trace_request.h"
#include "server/cli/simulate_json.h"
#include "server/rpc/caller.h"

namespace quire {
namespace {

struct ReplayFlags {
  std::string addr = "127.0.0.1:50051", trace;
  int32_t vocabulary = 1000;  // ids of prompts are below this
};

struct Call {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncReader<v1::GenerateResponse>> reader;
  v1::GenerateResponse message;
  grpc::Status status;
  bool finishing = false;
};

class Replay {
 public:
  Replay(const ReplayFlags& flags, const Trace& trace)
      : flags_(flags),
        trace_(trace),
        channel_(grpc::CreateChannel(flags.addr, grpc::InsecureChannelCredentials())),
        stub_(v1::InferenceService::NewStub(channel_)),
        book_(trace, {}),
        calls_(trace.arrivals.size()) {}

  nlohmann::ordered_json Run() {
    WarmUp();
    // Made beforehand: a client that is busy making requests sends them late.
    std::vector<v1::GenerateRequest> requests;
    for (size_t i = 0; i < trace_.arrivals.size(); ++i) requests.push_back(RequestFor(i));
    start_ = std::chrono::system_clock::now();
    SetAlarm(0);
    for (size_t next = 0; next < requests.size() || book_.open() > 0;) {
      void* tag;
      bool ok;
      CHECK(queue_.Next(&tag, &ok));
      if (tag != &alarm_) {
        Advance(reinterpret_cast<uintptr_t>(tag) - 1, ok);
        continue;
      }
      while (next < requests.size() && trace_.arrivals[next].time_ns <= Now()) {
        late_ns_ = std::max(late_ns_, Now() - trace_.arrivals[next].time_ns);
        Send(next, requests[next]);
        ++next;
      }
      if (next < requests.size()) SetAlarm(trace_.arrivals[next].time_ns);
    }
    const double seconds = static_cast<double>(Now()) * 1e-9;
    const nlohmann::ordered_json groups = GroupsJson(book_.Totals());
    const GroupTotals all = book_.Totals()[0];
    return {{"seconds", seconds},
            {"latest_send_ms", static_cast<double>(late_ns_) * 1e-6},
            {"output_tokens_per_s", static_cast<double>(all.output_tokens) / seconds},
            {"prompt_tokens_per_s", static_cast<double>(all.prompt_tokens) / seconds},
            {"all", groups[0]},
            {"tenants", nlohmann::ordered_json(groups.begin() + 1, groups.end())}};
  }

 private:
  int64_t Now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now() -
                                                                start_)
        .count();
  }
  void SetAlarm(int64_t at_ns) {
    alarm_.Set(&queue_, start_ + std::chrono::nanoseconds(at_ns), &alarm_);
  }

  v1::GenerateRequest RequestFor(size_t arrival) const {
    const Request wanted = RequestOf(trace_, arrival, flags_.vocabulary);
    v1::GenerateRequest request;
    for (const TokenId token : wanted.prompt) {
      request.mutable_prompt()->mutable_tokens()->add_ids(static_cast<uint32_t>(token));
    }
    request.mutable_sampling()->set_temperature(0);
    request.mutable_stopping()->set_max_tokens(static_cast<uint32_t>(wanted.stop.max_tokens));
    request.mutable_stopping()->set_ignore_eos(true);
    request.mutable_output()->set_tokens(true);
    request.set_priority(wanted.priority);
    return request;
  }

  // One call that connects and wakes everything up. It names no tenant, so that it leaves no prefix
  // to those of the trace.
  void WarmUp() {
    v1::GenerateRequest request = RequestFor(0);
    request.mutable_stopping()->set_max_tokens(2);
    grpc::ClientContext context;
    const auto reader = stub_->Generate(&context, request);
    v1::GenerateResponse message;
    while (reader->Read(&message)) {
    }
    const grpc::Status status = reader->Finish();
    CHECK(status.ok()) << status.error_message();
  }

  void Send(size_t arrival, const v1::GenerateRequest& request) {
    Call& call = calls_[arrival];
    call.context.AddMetadata(kTenantKey,
                             trace_.tenants[static_cast<size_t>(trace_.arrivals[arrival].tenant)]);
    book_.Arrived(TraceRequestId(arrival));
    call.reader =
        stub_->AsyncGenerate(&call.context, request, &queue_, reinterpret_cast<void*>(arrival + 1));
  }

  void Advance(size_t arrival, bool ok) {
    Call& call = calls_[arrival];
    void* tag = reinterpret_cast<void*>(arrival + 1);
    const MonotonicTime now{Now()};
    TokenEvent event;
    event.sequence.request = TraceRequestId(arrival);
    if (call.finishing) {
      if (call.status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
        book_.Rejected(event.sequence.request);
        return;
      }
      event.finish = call.status.ok() ? FinishReason::kLength : FinishReason::kError;
      book_.Record(event, now);
      return;
    }
    if (!ok) {
      call.finishing = true;
      call.reader->Finish(&call.status, tag);
      return;
    }
    event.token = TokenId{0};
    for (int i = 0; i < call.message.delta().tokens_size(); ++i) book_.Record(event, now);
    call.message.Clear();
    call.reader->Read(&call.message, tag);
  }

  const ReplayFlags& flags_;
  const Trace& trace_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::InferenceService::Stub> stub_;
  grpc::CompletionQueue queue_;
  grpc::Alarm alarm_;
  RequestBook book_;
  std::vector<Call> calls_;
  std::chrono::system_clock::time_point start_;
  int64_t late_ns_ = 0;
};

int Run(int argc, char** argv) {
  ReplayFlags flags;
  CLI::App app("Sends the requests of a trace to a server.", "serving_replay");
  app.add_option("--addr", flags.addr, "server");
  app.add_option("--trace", flags.trace, "CSV, as of quire simulate")->required();
  app.add_option("--vocabulary", flags.vocabulary, "ids of prompts are below this")
      ->check(CLI::Range(1, 1 << 20));
  CLI11_PARSE(app, argc, argv);
  const auto text = ReadRegularFile(flags.trace, size_t{1} << 28);
  CHECK_OK(text);
  const absl::StatusOr<Trace> trace = ParseTrace(flags.trace, *text);
  CHECK_OK(trace);
  std::printf("%s\n", Replay(flags, *trace).Run().dump().c_str());
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) { return quire::Run(argc, argv); }
