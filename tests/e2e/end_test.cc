// How requests end other than by themselves: cancel, deadline, Abort, slow readers, drain. Each
// leaves the server idle with every block free and the books balanced.
#include <grpcpp/create_channel.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_info.h"
#include "server/rpc/status_map.h"
#include "tests/e2e/test_server.h"

namespace quire {
namespace {

using ::testing::IsEmpty;

std::string Reason(const absl::Status& status) { return GetErrorInfo(status).reason; }

void WaitFor(const std::function<bool()>& condition) {
  for (int i = 0; i < 12'000 && !condition(); ++i) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_TRUE(condition());
}

// A Generate call on a thread of its own.
class Call {
 public:
  Call(TestServer& server, v1::GenerateRequest request)
      : thread_([this, &server, request = std::move(request)] {
          reply_ = server.Generate(request, [this](auto&, const auto&) { ++messages; }, &context);
          done = true;
        }) {}
  ~Call() {
    if (thread_.joinable()) thread_.join();
  }
  const Reply& Wait() {
    thread_.join();
    return reply_;
  }
  std::atomic<int> messages{0};
  std::atomic<bool> done{false};
  grpc::ClientContext context;

 private:
  Reply reply_;
  std::thread thread_;
};

TestServerOptions OneAtATime() {
  TestServerOptions options;
  options.scheduler.max_running = 1;
  return options;
}

TEST(Cancel, FreesARequestInPrefill) {
  TestServerOptions options;
  options.model.limits.max_rows = 16;  // a prompt takes many chunks
  TestServer server(options);
  server.runner().Close();
  Call call(server, MakeGenerate(std::string(200, 'p'), 100));
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  server.runner().Allow(3);
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  call.context.TryCancel();
  EXPECT_EQ(call.Wait().status.code(), absl::StatusCode::kCancelled);
  server.runner().Open();
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Cancel, FreesARequestInDecode) {
  TestServer server;
  const Reply reply =
      server.Generate(MakeGenerate("go", 1000),
                      [](grpc::ClientContext& context, const auto&) { context.TryCancel(); });
  EXPECT_EQ(reply.status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Cancel, FreesARequestInTheQueue) {
  TestServer server(OneAtATime());
  server.runner().Close();
  Call running(server, MakeGenerate("first", 3));
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  Call queued(server, MakeGenerate("second", 3));
  WaitFor([&] { return server.inbox().live() == 2; });
  queued.context.TryCancel();
  EXPECT_EQ(queued.Wait().status.code(), absl::StatusCode::kCancelled);
  server.runner().Open();
  EXPECT_TRUE(running.Wait().status.ok());
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Cancel, LeavesNeighboursAlone) {
  TestServer server;
  const Reply alone = server.Generate(MakeGenerate("neighbour", 200));
  std::vector<std::unique_ptr<Call>> doomed;
  Call neighbour(server, MakeGenerate("neighbour", 200));
  for (int i = 0; i < 8; ++i)
    doomed.push_back(std::make_unique<Call>(server, MakeGenerate("doomed", 1000)));
  for (auto& call : doomed) {
    WaitFor([&] { return call->messages > 0; });
    call->context.TryCancel();
  }
  EXPECT_EQ(neighbour.Wait().text, alone.text);
  for (auto& call : doomed) call->Wait();
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Cancel, OfThirtyTwoStreamsReturnsEveryBlock) {
  TestServerOptions options;
  options.model.limits.num_blocks = 200;
  TestServer server(options);
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 32; ++i)
    calls.push_back(std::make_unique<Call>(server, MakeGenerate("abc", 900)));
  for (auto& call : calls) WaitFor([&] { return call->messages > 2; });
  for (auto& call : calls) call->context.TryCancel();
  for (auto& call : calls) EXPECT_EQ(call->Wait().status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Deadline, EndsARequestWhereverItIs) {
  TestServer server(OneAtATime());
  server.runner().Close();
  Call running(server, MakeGenerate("holds the only place", 3));
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  EXPECT_EQ(server.Generate(MakeGenerate("queued", 3), nullptr, &context).status.code(),
            absl::StatusCode::kDeadlineExceeded);
  server.runner().Open();
  EXPECT_TRUE(running.Wait().status.ok());
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(TimeLimit, EndsWellWithTheTextSoFar) {
  TestServer server;
  server.runner().Close();
  v1::GenerateRequest request = MakeGenerate("slow", 500);
  request.mutable_stopping()->set_time_limit_ms(200);
  Call call(server, request);
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  server.runner().Allow(4);
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  absl::SleepFor(absl::Milliseconds(250));
  server.runner().Open();
  const Reply& reply = call.Wait();
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  EXPECT_EQ(reply.finished.reason(), v1::FINISH_REASON_TIME_LIMIT);
  EXPECT_LT(reply.usage.completion_tokens(), 500u);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Abort, EndsALiveRequestByIdFromAnotherConnection) {
  TestServer server;
  server.runner().Close();
  v1::GenerateRequest request = MakeGenerate("abort me", 1000);
  request.set_request_id("victim");
  Call call(server, request);
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  v1::AbortRequest abort;
  abort.add_request_ids("victim");
  abort.add_request_ids("nobody");
  v1::AbortResponse response;
  for (int i = 0; i < 2; ++i) {  // repeating is harmless
    grpc::ClientContext context;
    ASSERT_TRUE(server.inference().Abort(&context, abort, &response).ok());
  }
  EXPECT_EQ(response.results(0).status(), v1::ABORT_STATUS_ABORTED);
  EXPECT_EQ(response.results(1).status(), v1::ABORT_STATUS_NOT_LIVE);
  server.runner().Open();
  const Reply& reply = call.Wait();
  EXPECT_TRUE(reply.status.ok()) << reply.status;
  EXPECT_EQ(reply.finished.reason(), v1::FINISH_REASON_ABORTED);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
  grpc::ClientContext context;
  ASSERT_TRUE(server.inference().Abort(&context, abort, &response).ok());
  EXPECT_EQ(response.results(0).status(), v1::ABORT_STATUS_NOT_LIVE);
}

TEST(RequestId, IsRefusedWhileALiveRequestHasItAndFreeAfterwards) {
  TestServer server;
  server.runner().Close();
  v1::GenerateRequest request = MakeGenerate("once", 2);
  request.set_request_id("same");
  Call call(server, request);
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  const Reply twin = server.Generate(request);
  EXPECT_EQ(twin.status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Reason(twin.status), "REQUEST_ID_LIVE");
  server.runner().Open();
  EXPECT_TRUE(call.Wait().status.ok());
  EXPECT_TRUE(server.Generate(request).status.ok());
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

// A server and a client of it that reads one message and no more, with the smallest window gRPC
// allows.
class SlowReader : public ::testing::Test {
 protected:
  static TestServerOptions Options() {
    TestServerOptions options;
    options.stream_buffer_bytes = 4096;
    options.slow_reader_ms = 300;
    options.model.limits.num_blocks = 128;
    options.model.limits.context_tokens = 4096;
    return options;
  }
  static std::shared_ptr<grpc::Channel> Connect(TestServer& server) {  // a connection of its own
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return grpc::CreateCustomChannel(server.address(), grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  void StartLazily(TestServer& server) {
    v1::GenerateRequest request = MakeGenerate("lazy", 3000);
    request.mutable_output()->set_top_logprobs(20);  // some 400 bytes a token
    stub_ = v1::InferenceService::NewStub(Connect(server));
    reader_ = stub_->Generate(&context_, request);
    ASSERT_TRUE(reader_->Read(&message_));
  }

  grpc::ClientContext context_;
  v1::GenerateResponse message_;
  std::unique_ptr<v1::InferenceService::Stub> stub_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
};

TEST_F(SlowReader, IsPausedThenEndedWithoutHarmToOthers) {
  TestServer server(Options());
  StartLazily(server);
  WaitFor(
      [&] { return server.inbox().live() == 0; });  // its blocks come back although it never reads
  EXPECT_TRUE(server.Generate(MakeGenerate("eager", 50)).status.ok());
  while (reader_->Read(&message_)) {
  }
  const absl::Status status = FromGrpcStatus(reader_->Finish());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(Reason(status), "SLOW_READER");
  EXPECT_EQ(GetErrorInfo(status).retry_delay_ms, -1);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST_F(SlowReader, LosesItsPlaceIfItNeverReads) {
  TestServerOptions options = Options();
  options.max_calls = 1;
  options.reader_patience_ms = 200;
  TestServer server(options);
  StartLazily(server);
  const auto other = v1::ModelService::NewStub(Connect(server));
  WaitFor([&] {  // CALLS_FULL until the place is free
    grpc::ClientContext call;
    v1::GetLoadResponse load;
    return other->GetLoad(&call, {}, &load).ok();
  });
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Drain, LetsRunningRequestsFinishAndRefusesNewOnes) {
  TestServer server(OneAtATime());
  server.runner().Close();
  Call running(server, MakeGenerate("running", 900));
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  Call queued(server, MakeGenerate("queued", 20));
  WaitFor([&] { return server.inbox().live() == 2; });
  bool all = false;
  std::thread drain([&] { all = server.Drain(absl::Seconds(60)); });
  WaitFor([&] {
    server.runner().Allow(1);
    return queued.done.load();
  });
  const Reply& turned_away = queued.Wait();
  EXPECT_EQ(turned_away.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Reason(turned_away.status), "DRAINING");
  EXPECT_GE(GetErrorInfo(turned_away.status).retry_delay_ms, 0);
  const Reply late = server.Generate(MakeGenerate("late", 1));
  EXPECT_EQ(Reason(late.status), "DRAINING");
  server.runner().Open();
  drain.join();
  EXPECT_TRUE(all);
  EXPECT_TRUE(running.Wait().status.ok());
}

TEST(Drain, CutsOffWhatIsLeftAtItsTimeout) {
  TestServer server;
  server.runner().Close();
  Call call(server, MakeGenerate("endless", 1000));
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  server.runner().Allow(5);
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  std::thread release([&] {
    absl::SleepFor(absl::Milliseconds(300));
    server.runner().Allow(2);
  });
  EXPECT_FALSE(server.Drain(absl::Milliseconds(50)));
  release.join();
  const Reply& reply = call.Wait();
  EXPECT_EQ(reply.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Reason(reply.status), "SHUTDOWN");
  EXPECT_EQ(GetErrorInfo(reply.status).retry_delay_ms, -1);
  EXPECT_GT(reply.messages.size(), 0u);
}

}  // namespace
}  // namespace quire
