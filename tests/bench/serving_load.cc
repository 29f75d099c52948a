// A gRPC client that loads a running server and measures what arrives. One thread on one completion
// queue, so that it takes as little as possible from the server beside it. The last line of
// standard output is one JSON object. By hand, or through serving.py.
#include <grpcpp/alarm.h>
#include <grpcpp/create_channel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/log/check.h"
#include "quire/v1/inference.grpc.pb.h"
#include "quire/v1/model.grpc.pb.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

struct LoadFlags {
  std::string addr = "127.0.0.1:50051";
  uint32_t streams = 32, prompt_tokens = 128, output_tokens = 128;
  uint32_t vocabulary = 1000;  // random prompts are drawn from ids below this
  uint32_t probes = 20;
  double gap_s = 1.05;
};

// One Generate call and when its messages came.
struct Call {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncReader<v1::GenerateResponse>> reader;
  v1::GenerateResponse message;
  grpc::Status status;
  Clock::time_point sent;
  std::vector<Clock::time_point> arrivals;  // of tokens; one message may bring several
  bool finishing = false;
};

class LoadClient {
 public:
  explicit LoadClient(const LoadFlags& flags)
      : flags_(flags),
        channel_(grpc::CreateChannel(flags.addr, grpc::InsecureChannelCredentials())),
        stub_(v1::InferenceService::NewStub(channel_)) {}

  v1::GenerateRequest Request(uint32_t prompt_tokens, uint32_t output_tokens) {
    v1::GenerateRequest request;
    for (uint32_t i = 0; i < prompt_tokens; ++i) {
      request.mutable_prompt()->mutable_tokens()->add_ids(
          static_cast<uint32_t>(random_() % flags_.vocabulary));
    }
    request.mutable_sampling()->set_temperature(0);
    request.mutable_stopping()->set_max_tokens(output_tokens);
    request.mutable_stopping()->set_ignore_eos(true);
    request.mutable_output()->set_tokens(true);
    return request;
  }

  // Starts one call per request and returns when all have ended; CHECK-fails on a failed one.
  std::vector<std::unique_ptr<Call>> Run(const std::vector<v1::GenerateRequest>& requests) {
    std::vector<std::unique_ptr<Call>> calls;
    for (const v1::GenerateRequest& request : requests) {
      Call& call = *calls.emplace_back(std::make_unique<Call>());
      call.sent = Clock::now();
      call.reader = stub_->AsyncGenerate(&call.context, request, &queue_, &call);
    }
    void* tag;
    bool ok;
    for (size_t open = calls.size(); open > 0;) {
      CHECK(queue_.Next(&tag, &ok));
      open -= Advance(*static_cast<Call*>(tag), ok);
    }
    return calls;
  }

 private:
  // Returns 1 when the call has ended.
  size_t Advance(Call& call, bool ok) {
    if (call.finishing) {
      CHECK(call.status.ok()) << call.status.error_message();
      return 1;
    }
    if (!ok) {
      call.finishing = true;
      call.reader->Finish(&call.status, &call);
      return 0;
    }
    const int tokens = call.message.delta().tokens_size();
    if (tokens > 0) call.arrivals.resize(call.arrivals.size() + tokens, Clock::now());
    call.message.Clear();
    call.reader->Read(&call.message, &call);
    return 0;
  }

  const LoadFlags flags_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::InferenceService::Stub> stub_;
  grpc::CompletionQueue queue_;
  std::mt19937_64 random_{1};
};

double Quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

// Tokens per second while every stream generates: from the last first token to the first end.
Json Streams(LoadClient& client, const LoadFlags& flags) {
  std::vector<v1::GenerateRequest> requests;
  for (uint32_t i = 0; i < flags.streams; ++i) {
    requests.push_back(client.Request(flags.prompt_tokens, flags.output_tokens));
  }
  const auto calls = client.Run(requests);
  auto begin = Clock::time_point::min(), end = Clock::time_point::max();
  for (const auto& call : calls) {
    CHECK_EQ(call->arrivals.size(), flags.output_tokens);
    begin = std::max(begin, call->arrivals.front());
    end = std::min(end, call->arrivals.back());
  }
  size_t tokens = 0;
  std::vector<double> first, between;
  for (const auto& call : calls) {
    first.push_back(Seconds(call->arrivals.front() - call->sent) * 1e3);
    for (size_t i = 1; i < call->arrivals.size(); ++i) {
      tokens += call->arrivals[i] > begin && call->arrivals[i] <= end;
      between.push_back(Seconds(call->arrivals[i] - call->arrivals[i - 1]) * 1e3);
    }
  }
  CHECK(end > begin) << "--output-tokens is too small: no time in which all streams generate";
  return {{"streams", flags.streams},
          {"decode_tps", static_cast<double>(tokens) / Seconds(end - begin)},
          {"ttft_ms", {{"p50", Quantile(first, 0.5)}, {"p99", Quantile(first, 0.99)}}},
          {"itl_ms", {{"p50", Quantile(between, 0.5)}, {"p99", Quantile(between, 0.99)}}}};
}

// Milliseconds to the first message of a lone short call, `gap_s` after the one before.
Json FirstMessage(LoadClient& client, const LoadFlags& flags, double gap_s) {
  std::vector<double> first;
  for (uint32_t i = 0; i < flags.probes; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(gap_s));
    const auto calls = client.Run({client.Request(8, 1)});
    first.push_back(Seconds(calls[0]->arrivals.front() - calls[0]->sent) * 1e3);
  }
  return {{"gap_s", gap_s}, {"p50", Quantile(first, 0.5)}, {"p90", Quantile(first, 0.9)}};
}

int Run(int argc, char** argv) {
  LoadFlags flags;
  CLI::App app("Loads a running server and measures its streams.", "serving_load");
  app.add_option("--addr", flags.addr, "server");
  app.add_option("--streams", flags.streams, "calls at once")->check(CLI::Range(1, 1024));
  app.add_option("--prompt-tokens", flags.prompt_tokens, "of each")->check(CLI::Range(1, 1 << 20));
  app.add_option("--output-tokens", flags.output_tokens, "of each")->check(CLI::Range(2, 1 << 20));
  app.add_option("--vocabulary", flags.vocabulary, "ids of random prompts are below this");
  app.add_option("--probes", flags.probes, "lone calls for the first message; 0 = none");
  app.add_option("--gap", flags.gap_s, "seconds of idleness before each of them");
  CLI11_PARSE(app, argc, argv);

  LoadClient client(flags);
  (void)client.Run({client.Request(8, 2)});  // connects
  Json result = {{"streaming", Streams(client, flags)}, {"first_message_ms", Json::array()}};
  if (flags.probes > 0) {
    for (const double gap : {0.0, flags.gap_s}) {
      result["first_message_ms"].push_back(FirstMessage(client, flags, gap));
    }
  }
  std::printf("%s\n", result.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) { return quire::Run(argc, argv); }
