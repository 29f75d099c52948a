// The wire contract: numbers and names that clients compiled in must never change, and every field
// says in its comment what it accepts. Reads the compiled descriptors, and for comments a
// descriptor set that protoc wrote.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "compat/google/rpc/status_details.pb.h"
#include "compat/grpc/health/v1/health_service.pb.h"
#include "gtest/gtest.h"
#include "quire/v1/inference.pb.h"
#include "quire/v1/introspection.pb.h"
#include "quire/v1/model.pb.h"

namespace quire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::SourceLocation;

// Source comments exist only in descriptors made from the files.
class ProtoFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream in(QUIRE_DESCRIPTOR_SET, std::ios::binary);
    google::protobuf::FileDescriptorSet set;
    ASSERT_TRUE(set.ParseFromIstream(&in)) << QUIRE_DESCRIPTOR_SET;
    for (const auto& file : set.file()) {
      files_.push_back(pool_.BuildFile(file));
      ASSERT_NE(files_.back(), nullptr) << file.name();
    }
    ASSERT_EQ(files_.size(), 4u);
  }
  template <typename D>
  static void ExpectCommented(const D* d, const std::string& name) {
    SourceLocation location;
    EXPECT_TRUE(d->GetSourceLocation(&location)) << name;
    EXPECT_FALSE(location.leading_comments.empty()) << name << " has no comment above it";
  }

  DescriptorPool pool_;
  std::vector<const FileDescriptor*> files_;
};

TEST_F(ProtoFiles, CommentEveryMessageFieldEnumAndMethod) {
  int fields = 0;
  for (const FileDescriptor* file : files_) {
    for (int m = 0; m < file->message_type_count(); ++m) {
      const Descriptor* message = file->message_type(m);
      ExpectCommented(message, message->full_name());
      for (int f = 0; f < message->field_count(); ++f, ++fields) {
        ExpectCommented(message->field(f), message->field(f)->full_name());
      }
    }
    for (int e = 0; e < file->enum_type_count(); ++e) {
      const EnumDescriptor* type = file->enum_type(e);
      ExpectCommented(type, type->full_name());
      for (int v = 0; v < type->value_count(); ++v)
        ExpectCommented(type->value(v), type->value(v)->full_name());
    }
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        ExpectCommented(file->service(s)->method(m), file->service(s)->method(m)->full_name());
      }
    }
  }
  EXPECT_GT(fields, 200);
}

TEST_F(
    ProtoFiles,
    NumberFieldsWithoutGaps) {  // a gap would be a number that was used before: reserve it instead
  for (const FileDescriptor* file : files_) {
    for (int m = 0; m < file->message_type_count(); ++m) {
      const Descriptor* message = file->message_type(m);
      for (int number = 1; number <= message->field_count(); ++number) {
        EXPECT_TRUE(message->FindFieldByNumber(number) != nullptr ||
                    message->IsReservedNumber(number))
            << message->full_name() << " " << number;
      }
    }
  }
}

void ExpectField(const Descriptor* message, int number, const std::string& name,
                 FieldDescriptor::Type type) {
  const FieldDescriptor* field = message->FindFieldByNumber(number);
  ASSERT_NE(field, nullptr) << message->full_name() << " " << number;
  EXPECT_EQ(field->name(), name);
  EXPECT_EQ(field->type(), type) << field->full_name();
}

TEST(Proto, KeepsTheNumbersThatClientsCompiledIn) {
  using F = FieldDescriptor;
  const Descriptor* generate = v1::GenerateRequest::descriptor();
  EXPECT_EQ(generate->field_count(), 12);
  ExpectField(generate, 1, "request_id", F::TYPE_STRING);
  ExpectField(generate, 3, "prompt", F::TYPE_MESSAGE);
  ExpectField(generate, 10, "priority", F::TYPE_INT32);
  ExpectField(generate, 12, "kv_policy", F::TYPE_MESSAGE);
  ExpectField(v1::CacheOptions::descriptor(), 2, "salt", F::TYPE_STRING);
  ExpectField(v1::KvPolicy::descriptor(), 2, "sink_tokens", F::TYPE_UINT32);
  ExpectField(v1::Sampling::descriptor(), 2, "seed", F::TYPE_UINT64);
  ExpectField(v1::Sampling::descriptor(), 3, "temperature", F::TYPE_FLOAT);
  ExpectField(v1::Sampling::descriptor(), 10, "logit_bias", F::TYPE_MESSAGE);
  ExpectField(v1::Stopping::descriptor(), 7, "time_limit_ms", F::TYPE_UINT32);
  ExpectField(v1::GenerateResponse::descriptor(), 3, "delta", F::TYPE_MESSAGE);
  ExpectField(v1::TokenInfo::descriptor(), 2, "piece", F::TYPE_BYTES);
  ExpectField(v1::Finished::descriptor(), 6, "stop_string_index", F::TYPE_UINT32);
  ExpectField(v1::GetModelResponse::descriptor(), 20, "limits", F::TYPE_MESSAGE);
  ExpectField(v1::KvStored::descriptor(), 1, "block_hash", F::TYPE_FIXED64);
  ExpectField(v1::GetAttentionRequest::descriptor(), 12, "top_keys", F::TYPE_UINT32);
}

TEST(Proto, PutsEveryMethodOfTheApiInItsService) {
  const auto methods = [](const char* service) {
    const auto* descriptor = DescriptorPool::generated_pool()->FindServiceByName(service);
    std::set<std::string> names;
    for (int i = 0; descriptor != nullptr && i < descriptor->method_count(); ++i) {
      names.insert(descriptor->method(i)->name());
    }
    return names;
  };
  // Refer to the files, so that they are linked in.
  ASSERT_NE(v1::GetModelRequest::descriptor(), nullptr);
  ASSERT_NE(v1::ListHeadsRequest::descriptor(), nullptr);
  EXPECT_EQ(
      methods("quire.v1.InferenceService"),
      (std::set<std::string>{"Generate", "Tokenize", "Detokenize", "Embed", "Score", "Abort"}));
  EXPECT_EQ(methods("quire.v1.ModelService"),
            (std::set<std::string>{"GetModel", "GetServerInfo", "GetLoad", "GetTokenizer",
                                   "SubscribeKvEvents"}));
  EXPECT_EQ(methods("quire.v1.IntrospectionService"),
            (std::set<std::string>{"GetAttention", "ListHeads", "Attribute"}));
}

TEST(Proto, IsWireCompatibleWithTheOriginalsItStandsFor) {
  using F = FieldDescriptor;
  namespace rpc = compat::google::rpc;
  ExpectField(rpc::Status::descriptor(), 3, "details", F::TYPE_MESSAGE);
  ExpectField(rpc::ErrorInfo::descriptor(), 3, "metadata", F::TYPE_MESSAGE);
  ExpectField(rpc::RetryInfo::descriptor(), 1, "retry_delay", F::TYPE_MESSAGE);
  ExpectField(rpc::BadRequest::FieldViolation::descriptor(), 2, "description", F::TYPE_STRING);
  ExpectField(rpc::ResourceInfo::descriptor(), 2, "resource_name", F::TYPE_STRING);
  ExpectField(rpc::QuotaFailure::Violation::descriptor(), 1, "subject", F::TYPE_STRING);
  ExpectField(rpc::PreconditionFailure::Violation::descriptor(), 3, "description", F::TYPE_STRING);
  EXPECT_EQ(::grpc::health::v1::HealthCheckRequest::descriptor()->full_name(),
            "grpc.health.v1.HealthCheckRequest");
  EXPECT_EQ(static_cast<int>(::grpc::health::v1::HealthCheckResponse::NOT_SERVING), 2);
}

}  // namespace
}  // namespace quire
