// A whole server in this process on a port of its own: production rooms around a fake model and a
// fake tokenizer (ids 0..255 are bytes, so text is readable). Steps can be held back, so that a
// test decides what happens when.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "quire/v1/inference.grpc.pb.h"
#include "quire/v1/model.grpc.pb.h"
#include "runtime/text/prompt_encoder.h"
#include "server/delivery/delivery.h"
#include "server/engine/engine.h"
#include "server/engine/intake.h"
#include "server/metrics/books.h"
#include "server/metrics/metrics.h"
#include "server/rpc/rpc_server.h"
#include "tests/testing/fake_model_runner.h"
#include "tests/testing/fake_tokenizer.h"

namespace quire {

// A fake model whose steps wait for permission while it is closed.
class GatedRunner final : public ModelRunner {
 public:
  explicit GatedRunner(FakeModelOptions options) : fake_(std::move(options)) {}
  RunnerLimits Limits() const override { return fake_.Limits(); }
  StepOutput Forward(const StepBatch& batch) override;

  void Close();           // the next steps wait
  void Allow(int steps);  // lets so many pass
  void Open();
  bool WaitUntilHeld();  // a step waits at the gate

 private:
  FakeModelRunner fake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false, held_ = false;
  int allowed_ = 0;
};

struct TestServerOptions {
  FakeModelOptions model;
  SchedulerOptions scheduler;
  int32_t max_calls = 64;
  int64_t stream_buffer_bytes = 256 << 10;
  int64_t slow_reader_ms = 30'000;      // of delivery, while the request runs
  int64_t reader_patience_ms = 60'000;  // of the call, after it has ended
  int64_t receive_message_bytes = 4 << 20;
  int64_t max_prompt_bytes = 1 << 20;
  bool reflection = false;
  bool attach = true;  // false: stays LOADING
  std::vector<std::string> tenants{};
  bool deadline_admission = false;
  std::optional<ServiceRates> rates{};  // told to the door in place of the measured ones
};

// A finished Generate call as its client saw it.
struct Reply {
  std::vector<v1::GenerateResponse> messages;
  std::string text;  // of all deltas
  std::vector<uint32_t> ids;
  v1::Finished finished;
  v1::Usage usage;
  absl::Status status;
  std::multimap<std::string, std::string> headers, trailers;
};

class TestServer {
 public:
  explicit TestServer(TestServerOptions options = {});
  ~TestServer();

  const std::string& address() const { return rpc_->addresses()[0]; }
  std::shared_ptr<grpc::Channel> channel() const { return channel_; }
  v1::InferenceService::Stub& inference() { return *inference_; }
  v1::ModelService::Stub& model() { return *model_; }
  GatedRunner& runner() { return runner_; }
  RpcServer& rpc() { return *rpc_; }
  Engine& engine() { return *engine_; }
  Inbox& inbox() { return inbox_; }
  Books books() const;  // of one moment

  void Attach() { rpc_->Attach(&backend_); }
  // What SIGTERM does. True: nothing was cut off.
  bool Drain(absl::Duration timeout);
  // Sends the request and reads everything; `on_message` after each message.
  Reply Generate(const v1::GenerateRequest& request,
                 const std::function<void(grpc::ClientContext&, const v1::GenerateResponse&)>&
                     on_message = nullptr,
                 grpc::ClientContext* context = nullptr);
  // Waits until nothing is live, then checks that every block is free and the books balance; "" if
  // so.
  std::string CheckIdle();

 private:
  std::string WrongAtRest();  // at this moment
  static FakeModelOptions WithVocabulary(FakeModelOptions options, int32_t vocab_size);
  const TestServerOptions options_;
  SteadyClock clock_;
  FakeTokenizer tokenizer_;
  PromptEncoder encoder_{&tokenizer_, nullptr};
  GatedRunner runner_;
  Tenants tenants_;
  CacheDomains domains_;
  Inbox inbox_;
  StepEvents events_;
  Backend backend_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<Delivery> delivery_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Intake> intake_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::InferenceService::Stub> inference_;
  std::unique_ptr<v1::ModelService::Stub> model_;
};

// A greedy request that runs for exactly `max_tokens` tokens.
v1::GenerateRequest MakeGenerate(const std::string& prompt, uint32_t max_tokens);

}  // namespace quire
