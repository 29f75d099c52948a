// One test per row of the status contract that this build can produce, read back by a client.
#include <grpcpp/create_channel.h>

#include <chrono>
#include <limits>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_info.h"
#include "server/rpc/status_map.h"
#include "tests/e2e/test_server.h"

namespace quire {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Pair;

void Expect(const absl::Status& status, absl::StatusCode code, const std::string& reason) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(GetErrorInfo(status).reason, reason) << status;
}

TEST(StatusTable, InvalidArgumentNamesTheField) {
  TestServer server;
  v1::GenerateRequest request = MakeGenerate("x", 1);
  request.mutable_sampling()->set_top_p(std::numeric_limits<float>::quiet_NaN());
  request.mutable_stopping()->add_stop_strings("");
  const absl::Status status = server.Generate(request).status;
  Expect(status, absl::StatusCode::kInvalidArgument, "FIELD_INVALID");
  const ErrorInfo info = GetErrorInfo(status);
  ASSERT_EQ(info.violations.size(), 2u);
  EXPECT_EQ(info.violations[0].field, "sampling.top_p");
  EXPECT_EQ(info.violations[1].field, "stopping.stop_strings[0]");
  EXPECT_EQ(info.retry_delay_ms, -1);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(StatusTable, EmptyPrompt) {
  TestServer server;
  Expect(server.Generate(MakeGenerate("", 1)).status, absl::StatusCode::kInvalidArgument,
         "PROMPT_EMPTY");
}

TEST(StatusTable, PromptBeyondItsBytes) {
  TestServerOptions options;
  options.max_prompt_bytes = 100;
  TestServer server(options);
  const absl::Status status = server.Generate(MakeGenerate(std::string(101, 'a'), 1)).status;
  Expect(status, absl::StatusCode::kInvalidArgument, "PROMPT_BYTES");
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("actual", "101")));
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("limit", "100")));
}

TEST(StatusTable, PromptBeyondTheContext) {
  TestServerOptions options;
  options.model.limits.context_tokens = 256;
  TestServer server(options);
  const absl::Status status = server.Generate(MakeGenerate(std::string(300, 'a'), 1)).status;
  Expect(status, absl::StatusCode::kInvalidArgument, "PROMPT_TOO_LONG");
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("limit", "255")));
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(StatusTable, PromptBeyondThePool) {
  TestServerOptions options;
  options.model.limits.num_blocks = 2;
  TestServer server(options);
  const absl::Status status = server.Generate(MakeGenerate(std::string(300, 'a'), 1)).status;
  Expect(status, absl::StatusCode::kInvalidArgument, "KV_POOL_TOO_SMALL");
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("total_blocks", "2")));
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("needed_blocks", "5")));
}

TEST(StatusTable, FieldThatThisBuildLacks) {
  TestServer server;
  v1::GenerateRequest request = MakeGenerate("x", 1);
  request.set_draft_tokens(2);
  const absl::Status status = server.Generate(request).status;
  Expect(status, absl::StatusCode::kUnimplemented, "FIELD_UNSUPPORTED");
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("field", "draft_tokens")));
}

TEST(StatusTable, UnknownFieldNumber) {
  TestServer server;
  v1::GenerateRequest request = MakeGenerate("x", 1);
  auto* stopping = request.mutable_stopping();
  stopping->GetReflection()->MutableUnknownFields(stopping)->AddVarint(77, 1);
  const absl::Status status = server.Generate(request).status;
  Expect(status, absl::StatusCode::kUnimplemented, "FIELD_UNKNOWN");
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("message", "quire.v1.Stopping")));
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("number", "77")));
}

TEST(StatusTable, MethodThatThisBuildLacks) {
  TestServer server;
  grpc::ClientContext embed, tokenizer;
  v1::EmbedResponse response;
  Expect(FromGrpcStatus(server.inference().Embed(&embed, {}, &response)),
         absl::StatusCode::kUnimplemented, "METHOD_UNSUPPORTED");
  v1::GetTokenizerResponse piece;
  const auto reader = server.model().GetTokenizer(&tokenizer, {});
  EXPECT_FALSE(reader->Read(&piece));
  Expect(FromGrpcStatus(reader->Finish()), absl::StatusCode::kUnimplemented, "METHOD_UNSUPPORTED");
}

TEST(StatusTable, UnknownModel) {
  TestServer server;
  v1::GenerateRequest request = MakeGenerate("x", 1);
  request.set_model("other");
  const absl::Status status = server.Generate(request).status;
  Expect(status, absl::StatusCode::kNotFound, "MODEL_NOT_FOUND");
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("model", "other")));
}

TEST(StatusTable, ModelWithoutAChatTemplate) {
  TestServer server;
  v1::GenerateRequest request = MakeGenerate("x", 1);
  v1::ChatMessage* message = request.mutable_prompt()->mutable_chat()->add_messages();
  message->set_role("user");
  message->set_content("hello");
  Expect(server.Generate(request).status, absl::StatusCode::kFailedPrecondition,
         "NO_CHAT_TEMPLATE");
}

TEST(StatusTable, FullQueueSaysWhenToComeBack) {
  TestServerOptions options;
  options.scheduler.max_running = 1;
  options.scheduler.max_waiting = 1;
  TestServer server(options);
  server.runner().Close();
  const auto generate = [&server] { server.Generate(MakeGenerate("x", 2)); };
  std::thread first(generate);
  EXPECT_TRUE(server.runner().WaitUntilHeld());
  std::thread second(generate);
  while (server.inbox().live() < 2) absl::SleepFor(absl::Milliseconds(2));
  const Reply reply = server.Generate(MakeGenerate("too much", 2));
  Expect(reply.status, absl::StatusCode::kResourceExhausted, "QUEUE_FULL");
  EXPECT_THAT(std::string(reply.status.message()),
              testing::HasSubstr("2 sequences run or wait (max_running 1 + max_waiting 1)"));
  EXPECT_GE(GetErrorInfo(reply.status).retry_delay_ms, 50);
  ASSERT_EQ(reply.trailers.count("grpc-retry-pushback-ms"), 1u);
  EXPECT_EQ(reply.trailers.find("grpc-retry-pushback-ms")->second,
            std::to_string(GetErrorInfo(reply.status).retry_delay_ms));
  server.runner().Open();
  first.join();
  second.join();
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(StatusTable, QueueFullOfPromptTokens) {
  TestServerOptions options;
  options.scheduler.max_running = 1;
  options.scheduler.max_waiting_tokens = 100;
  TestServer server(options);
  server.runner().Close();
  const auto generate = [&server] { server.Generate(MakeGenerate(std::string(80, 'x'), 2)); };
  std::thread first(generate);
  EXPECT_TRUE(server.runner().WaitUntilHeld());
  std::thread second(generate);
  while (server.inbox().waiting_tokens() < 80) absl::SleepFor(absl::Milliseconds(2));
  const absl::Status status = server.Generate(MakeGenerate(std::string(80, 'y'), 2)).status;
  Expect(status, absl::StatusCode::kResourceExhausted, "QUEUE_TOKENS_FULL");
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("limit", "100")));
  EXPECT_GE(GetErrorInfo(status).retry_delay_ms, 50);
  server.runner().Open();
  first.join();
  second.join();
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

// A server that takes a second for a token of a prompt, or believes so.
TestServerOptions Slow() {
  TestServerOptions options;
  options.scheduler.max_running = 1;
  options.deadline_admission = true;
  options.rates = ServiceRates{.prefill_tokens_per_second = 1};
  return options;
}

Reply Within(TestServer& server, const v1::GenerateRequest& request,
             std::chrono::seconds deadline) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  return server.Generate(request, nullptr, &context);
}

TEST(StatusTable, DeadlineThatCannotBeMet) {
  TestServer server(Slow());
  EXPECT_TRUE(Within(server, MakeGenerate("x", 2), std::chrono::hours(1)).status.ok());
  const absl::Status status =
      Within(server, MakeGenerate(std::string(900, 'x'), 2), std::chrono::minutes(5)).status;
  Expect(status, absl::StatusCode::kDeadlineExceeded, "DEADLINE");
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("stage", "admission")));
  EXPECT_EQ(GetErrorInfo(status).retry_delay_ms, -1);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(StatusTable, DeadlineThatTheQueueCannotMeet) {
  TestServer server(Slow());
  server.runner().Close();
  std::thread first([&server] { server.Generate(MakeGenerate("x", 2)); });
  EXPECT_TRUE(server.runner().WaitUntilHeld());
  std::thread second([&server] { server.Generate(MakeGenerate(std::string(100, 'x'), 2)); });
  while (server.inbox().waiting_tokens() < 100) absl::SleepFor(absl::Milliseconds(2));
  const absl::Status status = Within(server, MakeGenerate("x", 2), std::chrono::seconds(60)).status;
  Expect(status, absl::StatusCode::kResourceExhausted, "QUEUE_AGE");
  EXPECT_GE(GetErrorInfo(status).retry_delay_ms, 50);
  server.runner().Open();
  first.join();
  second.join();
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(StatusTable, MetadataThatIsNoTenant) {
  TestServer server;
  grpc::ClientContext context;
  context.AddMetadata("x-quire-tenant", "Not A Name");
  context.AddMetadata("x-quire-priority", "11");
  const absl::Status status = server.Generate(MakeGenerate("x", 1), nullptr, &context).status;
  Expect(status, absl::StatusCode::kInvalidArgument, "FIELD_INVALID");
  ASSERT_EQ(GetErrorInfo(status).violations.size(), 2u);
  EXPECT_EQ(GetErrorInfo(status).violations[0].field, "x-quire-tenant");
  EXPECT_EQ(GetErrorInfo(status).violations[1].field, "x-quire-priority");
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(StatusTable, PriorityThatDisagreesWithTheMetadata) {
  TestServer server;
  grpc::ClientContext context;
  context.AddMetadata("x-quire-priority", "1");
  v1::GenerateRequest request = MakeGenerate("x", 1);
  request.set_priority(2);
  Expect(server.Generate(request, nullptr, &context).status, absl::StatusCode::kInvalidArgument,
         "FIELD_CONFLICT");
}

TEST(StatusTable, Faulty) {
  TestServer server;
  server.rpc().health().SetState(ServerState::kFaulty);
  const absl::Status status = server.Generate(MakeGenerate("x", 1)).status;
  Expect(status, absl::StatusCode::kUnavailable, "FAULTY");
  EXPECT_GE(GetErrorInfo(status).retry_delay_ms, 0);
}

TEST(StatusTable, CallsBeyondTheCap) {
  TestServerOptions options;
  options.max_calls = 1;
  TestServer server(options);
  server.runner().Close();
  std::thread first([&server] { server.Generate(MakeGenerate("x", 2)); });
  EXPECT_TRUE(server.runner().WaitUntilHeld());
  // From another connection: on one, the stream limit would make the call wait instead.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel =
      grpc::CreateCustomChannel(server.address(), grpc::InsecureChannelCredentials(), arguments);
  grpc::ClientContext context;
  v1::GetLoadResponse load;
  const absl::Status status =
      FromGrpcStatus(v1::ModelService::NewStub(channel)->GetLoad(&context, {}, &load));
  Expect(status, absl::StatusCode::kResourceExhausted, "CALLS_FULL");
  EXPECT_GE(GetErrorInfo(status).retry_delay_ms, 0);
  server.runner().Open();
  first.join();
}

TEST(StatusTable, Loading) {
  TestServerOptions options;
  options.attach = false;
  TestServer server(options);
  const absl::Status status = server.Generate(MakeGenerate("x", 1)).status;
  Expect(status, absl::StatusCode::kUnavailable, "LOADING");
  EXPECT_GE(GetErrorInfo(status).retry_delay_ms, 0);
  server.Attach();
  EXPECT_TRUE(server.Generate(MakeGenerate("x", 1)).status.ok());
}

TEST(StatusTable, Stalled) {
  TestServer server;
  server.rpc().health().SetState(ServerState::kStalled);
  Expect(server.Generate(MakeGenerate("x", 1)).status, absl::StatusCode::kUnavailable, "STALLED");
}

TEST(StatusTable, NonFiniteLogitsEndThatRequestOnly) {
  TestServerOptions options;
  options.model.nan_row = [](const FakeRow& row) { return row.token == TokenId{'!'}; };
  TestServer server(options);
  Expect(server.Generate(MakeGenerate("boom!", 5)).status, absl::StatusCode::kInternal,
         "NON_FINITE");
  EXPECT_TRUE(server.Generate(MakeGenerate("fine", 1)).status.ok());
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(StatusTable, MessageBeyondTheReceiveLimitIsTheLibrarysToRefuse) {
  TestServerOptions options;
  options.receive_message_bytes = 10'000;
  TestServer server(options);
  const absl::Status status = server.Generate(MakeGenerate(std::string(20'000, 'a'), 1)).status;
  Expect(status, absl::StatusCode::kResourceExhausted, "");
}

TEST(StatusTable, CompressedMessageIsRefusedAtTheHeaders) {
  TestServer server;
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const Reply reply = server.Generate(MakeGenerate(std::string(2000, 'a'), 1), nullptr, &context);
  EXPECT_EQ(reply.status.code(), absl::StatusCode::kUnimplemented) << reply.status;
}

}  // namespace
}  // namespace quire
