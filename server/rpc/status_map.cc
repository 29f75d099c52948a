#include "server/rpc/status_map.h"

#include <string>
#include <utility>

#include "compat/google/rpc/status_details.pb.h"
#include "runtime/base/error_info.h"
#include "runtime/text/utf8.h"

namespace quire {
namespace {

namespace wire = compat::google::rpc;

constexpr char kTypeUrl[] = "type.googleapis.com/google.rpc.";
constexpr size_t kMaxMessageBytes = 1024;

grpc::StatusCode CodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDataLoss:
      return grpc::StatusCode::INTERNAL;
    default:
      return static_cast<grpc::StatusCode>(code);
  }
}

// Every error names a reason; these are for statuses that were made without one.
const char* DefaultReason(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return "FIELD_INVALID";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return "DEADLINE";
    case grpc::StatusCode::INTERNAL:
      return "ENGINE_FAULT";
    default:
      return "";
  }
}

void Pack(const google::protobuf::Message& detail, const char* name, wire::Status* out) {
  google::protobuf::Any* any = out->add_details();
  any->set_type_url(std::string(kTypeUrl) + name);
  any->set_value(detail.SerializeAsString());
}

std::string Metadata(const ErrorInfo& info, const std::string& key) {
  for (const auto& [k, value] : info.metadata) {
    if (k == key) return value;
  }
  return {};
}

// The detail that belongs to a kind of error, besides ErrorInfo, BadRequest and RetryInfo.
void PackByKind(grpc::StatusCode code, const std::string& message, const ErrorInfo& info,
                wire::Status* out) {
  if (code == grpc::StatusCode::NOT_FOUND) {
    wire::ResourceInfo detail;
    detail.set_resource_type("model");
    detail.set_resource_name(Metadata(info, "model"));
    detail.set_description(message);
    Pack(detail, "ResourceInfo", out);
  } else if (code == grpc::StatusCode::RESOURCE_EXHAUSTED && info.reason != "SLOW_READER") {
    wire::QuotaFailure detail;
    auto* violation = detail.add_violations();
    violation->set_subject(info.reason);
    violation->set_description(message);
    Pack(detail, "QuotaFailure", out);
  } else if (code == grpc::StatusCode::FAILED_PRECONDITION) {
    wire::PreconditionFailure detail;
    auto* violation = detail.add_violations();
    violation->set_type(info.reason);
    violation->set_description(message);
    Pack(detail, "PreconditionFailure", out);
  }
}

std::string Details(grpc::StatusCode code, const std::string& message, const ErrorInfo& info,
                    size_t violations) {
  wire::Status out;
  out.set_code(code);
  out.set_message(message);
  wire::ErrorInfo error;
  error.set_reason(info.reason.empty() ? DefaultReason(code) : info.reason);
  error.set_domain("quire");
  for (const auto& [key, value] : info.metadata) (*error.mutable_metadata())[key] = value;
  Pack(error, "ErrorInfo", &out);
  if (violations > 0) {
    wire::BadRequest detail;
    for (size_t i = 0; i < violations; ++i) {
      auto* violation = detail.add_field_violations();
      violation->set_field(info.violations[i].field);
      violation->set_description(info.violations[i].description);
    }
    Pack(detail, "BadRequest", &out);
  }
  if (info.retry_delay_ms >= 0) {
    wire::RetryInfo detail;
    detail.mutable_retry_delay()->set_seconds(info.retry_delay_ms / 1000);
    detail.mutable_retry_delay()->set_nanos(static_cast<int32_t>(info.retry_delay_ms % 1000) *
                                            1'000'000);
    Pack(detail, "RetryInfo", &out);
  }
  PackByKind(code, message, info, &out);
  return out.SerializeAsString();
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const ErrorInfo info = GetErrorInfo(status);
  const grpc::StatusCode code = CodeOf(status.code());
  std::string message(status.message());
  message.resize(CutBefore(message, kMaxMessageBytes));
  size_t violations = info.violations.size();
  std::string details = Details(code, message, info, violations);
  while (details.size() > kMaxStatusDetailBytes && violations > 0) {
    details = Details(code, message, info, --violations);
  }
  if (details.size() > kMaxStatusDetailBytes) {
    details = Details(code, {}, {.reason = info.reason, .metadata = {}, .violations = {}}, 0);
  }
  return grpc::Status(code, message, details);
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  ErrorInfo info;
  wire::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& any : details.details()) {
      const std::string& url = any.type_url();
      const std::string name =
          url.starts_with(kTypeUrl) ? url.substr(sizeof(kTypeUrl) - 1) : std::string();
      wire::ErrorInfo error;
      wire::BadRequest bad;
      wire::RetryInfo retry;
      if (name == "ErrorInfo" && error.ParseFromString(any.value())) {
        info.reason = error.reason();
        for (const auto& [key, value] : error.metadata()) info.metadata.emplace_back(key, value);
      } else if (name == "BadRequest" && bad.ParseFromString(any.value())) {
        for (const auto& v : bad.field_violations())
          info.violations.push_back({v.field(), v.description()});
      } else if (name == "RetryInfo" && retry.ParseFromString(any.value())) {
        info.retry_delay_ms =
            retry.retry_delay().seconds() * 1000 + retry.retry_delay().nanos() / 1'000'000;
      }
    }
  }
  return MakeError(static_cast<absl::StatusCode>(status.error_code()), status.error_message(),
                   info);
}

}  // namespace quire
