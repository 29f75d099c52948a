#include "server/rpc/status_map.h"

#include "compat/google/rpc/status_details.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_info.h"
#include "runtime/text/utf8.h"

namespace quire {
namespace {

namespace wire = compat::google::rpc;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

std::vector<std::string> DetailTypes(const grpc::Status& status) {
  wire::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), status.error_code());
  std::vector<std::string> types;
  for (const auto& any : details.details()) types.push_back(any.type_url());
  return types;
}

TEST(ToGrpcStatus, KeepsEveryCodeThatWeSend) {
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status =
        ToGrpcStatus(absl::Status(static_cast<absl::StatusCode>(code), "m"));
    // UNKNOWN and its like.
    const bool never_sent = code == 2 || code == 10 || code == 11 || code == 15;
    EXPECT_EQ(status.error_code(),
              never_sent ? grpc::StatusCode::INTERNAL : static_cast<grpc::StatusCode>(code));
    EXPECT_EQ(status.error_message(), "m");
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
}

TEST(ToGrpcStatus, CutsALongMessageBetweenCodePoints) {
  for (size_t lead = 0; lead < 4; ++lead) {
    std::string message(lead, 'a');
    for (int i = 0; i < 400; ++i) message += "\xF0\x9F\x98\x80";
    const grpc::Status status = ToGrpcStatus(absl::InvalidArgumentError(message));
    EXPECT_TRUE(IsValidUtf8(status.error_message()));
    EXPECT_LE(status.error_message().size(), 1024u);
    EXPECT_GT(status.error_message().size(), 1020u);
    EXPECT_TRUE(message.starts_with(status.error_message()));
  }
}

TEST(ToGrpcStatus, CarriesTheDetailsOfItsKind) {
  const auto types = [](absl::StatusCode code, ErrorInfo info) {
    return DetailTypes(ToGrpcStatus(MakeError(code, "m", info)));
  };
  EXPECT_THAT(types(absl::StatusCode::kInvalidArgument,
                    {.reason = "R", .metadata = {}, .violations = {{"f", "d"}}}),
              ElementsAre("type.googleapis.com/google.rpc.ErrorInfo",
                          "type.googleapis.com/google.rpc.BadRequest"));
  EXPECT_THAT(
      types(absl::StatusCode::kResourceExhausted,
            {.reason = "QUEUE_FULL", .metadata = {}, .violations = {}, .retry_delay_ms = 70}),
      ElementsAre("type.googleapis.com/google.rpc.ErrorInfo",
                  "type.googleapis.com/google.rpc.RetryInfo",
                  "type.googleapis.com/google.rpc.QuotaFailure"));
  EXPECT_THAT(types(absl::StatusCode::kResourceExhausted,
                    {.reason = "SLOW_READER", .metadata = {}, .violations = {}}),
              ElementsAre("type.googleapis.com/google.rpc.ErrorInfo"));
  EXPECT_THAT(types(absl::StatusCode::kNotFound,
                    {.reason = "MODEL_NOT_FOUND", .metadata = {}, .violations = {}}),
              Contains("type.googleapis.com/google.rpc.ResourceInfo"));
  EXPECT_THAT(types(absl::StatusCode::kFailedPrecondition,
                    {.reason = "P", .metadata = {}, .violations = {}}),
              Contains("type.googleapis.com/google.rpc.PreconditionFailure"));
  EXPECT_THAT(types(absl::StatusCode::kUnavailable,
                    {.reason = "SHUTDOWN", .metadata = {}, .violations = {}}),
              Not(Contains("type.googleapis.com/google.rpc.RetryInfo")));
}

TEST(ToGrpcStatus, ComesBackWhole) {
  const absl::Status sent = MakeError(absl::StatusCode::kResourceExhausted, "later",
                                      {.reason = "QUEUE_FULL",
                                       .metadata = {{"limit", "8"}},
                                       .violations = {{"a.b", "c"}},
                                       .retry_delay_ms = 1234});
  const absl::Status received = FromGrpcStatus(ToGrpcStatus(sent));
  EXPECT_EQ(received.code(), sent.code());
  EXPECT_EQ(received.message(), sent.message());
  const ErrorInfo info = GetErrorInfo(received);
  EXPECT_EQ(info.reason, "QUEUE_FULL");
  EXPECT_THAT(info.metadata, ElementsAre(std::pair<std::string, std::string>("limit", "8")));
  ASSERT_EQ(info.violations.size(), 1u);
  EXPECT_EQ(info.violations[0].field, "a.b");
  EXPECT_EQ(info.violations[0].description, "c");
  EXPECT_EQ(info.retry_delay_ms, 1234);
}

TEST(ToGrpcStatus, NeverExceedsFourKibibytesOfDetails) {
  ErrorInfo info{.reason = "FIELD_INVALID", .metadata = {}, .violations = {}};
  for (int i = 0; i < 16; ++i)
    info.violations.push_back({std::string(400, 'f'), std::string(400, 'd')});
  const grpc::Status some = ToGrpcStatus(MakeError(absl::StatusCode::kInvalidArgument, "m", info));
  EXPECT_LE(some.error_details().size(), kMaxStatusDetailBytes);
  EXPECT_FALSE(GetErrorInfo(FromGrpcStatus(some)).violations.empty());
  info.metadata = {{"k", std::string(5000, 'v')}};
  const grpc::Status none =
      ToGrpcStatus(MakeError(absl::StatusCode::kInvalidArgument, std::string(9000, 'm'), info));
  EXPECT_LE(none.error_details().size(), kMaxStatusDetailBytes);
  EXPECT_EQ(GetErrorInfo(FromGrpcStatus(none)).reason, "FIELD_INVALID");
  EXPECT_LE(none.error_message().size(), 1024u);
}

TEST(FromGrpcStatus, TakesAStatusWithoutDetails) {
  const absl::Status status = FromGrpcStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetErrorInfo(status).reason, "");
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::INTERNAL, "x", "not a proto")).code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace quire
