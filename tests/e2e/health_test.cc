// Health, reflection and the model service in every state of the server.
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compat/grpc/health/v1/health_service.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/test_server.h"

namespace quire {
namespace {

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;
using HealthStub = ::grpc::health::v1::Health;

std::string Check(TestServer& server, const std::string& service) {
  HealthCheckRequest request;
  request.set_service(service);
  HealthCheckResponse response;
  grpc::ClientContext context;
  const grpc::Status status =
      HealthStub::NewStub(server.channel())->Check(&context, request, &response);
  if (!status.ok())
    return status.error_code() == grpc::StatusCode::NOT_FOUND ? "NOT_FOUND" : "FAILED";
  return HealthCheckResponse::ServingStatus_Name(response.status());
}

TEST(HealthService, FollowsTheStateOfTheServer) {
  TestServerOptions options;
  options.attach = false;
  TestServer server(options);
  const auto expect = [&server](const std::string& all) {
    for (const char* name : {"", "quire.v1.InferenceService", "quire.v1.ModelService"}) {
      EXPECT_EQ(Check(server, name), all) << name;
    }
    EXPECT_EQ(Check(server, "quire.live"), "SERVING");
    EXPECT_EQ(Check(server, "no.such.Service"), "NOT_FOUND");
  };
  expect("NOT_SERVING");  // loading
  server.Attach();
  expect("SERVING");
  server.rpc().health().SetState(ServerState::kStalled);
  expect("NOT_SERVING");
  server.rpc().health().SetState(ServerState::kReady);
  expect("SERVING");
  server.rpc().health().SetState(ServerState::kDraining);
  expect("NOT_SERVING");
  server.rpc().health().GiveUp();
  EXPECT_EQ(Check(server, "quire.live"), "NOT_SERVING");
}

TEST(HealthService, WatchTellsEachChangeOnce) {
  TestServer server;
  grpc::ClientContext context, unknown_context;
  HealthCheckRequest request;
  const auto stub = HealthStub::NewStub(server.channel());
  const auto reader = stub->Watch(&context, request);
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  server.rpc().health().SetState(ServerState::kReady);  // no change
  server.rpc().health().SetState(ServerState::kDraining);
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  request.set_service("unknown");
  const auto unknown = stub->Watch(&unknown_context, request);
  ASSERT_TRUE(unknown->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  unknown_context.TryCancel();
  EXPECT_EQ(unknown->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server.Drain(absl::ZeroDuration());  // ends the other watch
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(ModelService, DescribesModelServerAndLoad) {
  TestServer server;
  grpc::ClientContext a, b, c, d;
  v1::GetModelResponse model;
  ASSERT_TRUE(server.model().GetModel(&a, {}, &model).ok());
  EXPECT_EQ(model.id(), "fake");
  EXPECT_EQ(model.vocab_size(), 260u);
  EXPECT_EQ(model.context_tokens(), 1024u);
  EXPECT_EQ(model.bos_token_id(), 256u);
  EXPECT_EQ(model.limits().max_outputs(), 8u);
  v1::GetModelRequest other;
  other.set_model("other");
  EXPECT_EQ(server.model().GetModel(&b, other, &model).error_code(), grpc::StatusCode::NOT_FOUND);
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(server.model().GetServerInfo(&c, {}, &info).ok());
  EXPECT_EQ(info.version(), "1.2.3");
  EXPECT_EQ(info.instance_id(), "test");
  EXPECT_EQ(info.state(), v1::SERVER_STATE_READY);
  EXPECT_EQ(info.isa(), "fake-isa");
  EXPECT_EQ(info.services_size(), 2);
  v1::GetLoadResponse load;
  server.Generate(MakeGenerate("work", 3));
  ASSERT_TRUE(server.model().GetLoad(&d, {}, &load).ok());
  EXPECT_EQ(load.total_blocks(), 16u);
  EXPECT_EQ(load.block_tokens(), 64u);
  EXPECT_GE(load.step(), 3u);
}

TEST(ModelService, AnswersWhileLoading) {
  TestServerOptions options;
  options.attach = false;
  TestServer server(options);
  grpc::ClientContext a, b;
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(server.model().GetServerInfo(&a, {}, &info).ok());
  EXPECT_EQ(info.state(), v1::SERVER_STATE_LOADING);
  v1::GetLoadResponse load;
  ASSERT_TRUE(server.model().GetLoad(&b, {}, &load).ok());
  EXPECT_EQ(load.state(), v1::SERVER_STATE_LOADING);
}

// The reflection protocol by its bytes: list_services = field 7 of the request; names come back in
// the reply.
std::string ListServices(TestServer& server) {
  const std::string wire("\x3a\x01*", 3);
  grpc::Slice slice(wire);
  grpc::ByteBuffer request(&slice, 1);
  grpc::GenericStub stub(server.channel());
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const auto stream = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  void* tag = nullptr;
  bool ok = false;
  const auto wait = [&] { return queue.Next(&tag, &ok) && ok; };
  stream->StartCall(nullptr);
  wait();
  stream->Write(request, nullptr);
  wait();
  grpc::ByteBuffer reply;
  stream->Read(&reply, nullptr);
  std::string text;
  if (wait()) {
    std::vector<grpc::Slice> slices;
    reply.Dump(&slices);
    for (const grpc::Slice& s : slices)
      text.append(reinterpret_cast<const char*>(s.begin()), s.size());
  }
  context.TryCancel();
  grpc::Status status;
  stream->Finish(&status, nullptr);
  wait();
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return text;
}

TEST(Reflection, ListsTheServicesOnlyWhereItIsOn) {
  {
    TestServerOptions options;
    options.reflection = true;
    TestServer with(options);
    const std::string names = ListServices(with);
    EXPECT_THAT(names, ::testing::HasSubstr("quire.v1.InferenceService"));
    EXPECT_THAT(names, ::testing::HasSubstr("quire.v1.ModelService"));
    EXPECT_THAT(names, ::testing::HasSubstr("grpc.health.v1.Health"));
    EXPECT_TRUE(with.Generate(MakeGenerate("beside the async services", 3)).status.ok());
  }
  TestServer without;
  EXPECT_EQ(ListServices(without), "");
}

}  // namespace
}  // namespace quire
