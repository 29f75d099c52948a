#include "server/rpc/violations.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr size_t kMaxViolations = 16;

}  // namespace

void Violations::Add(Entry entry) {
  if (list_.size() < kMaxViolations) list_.push_back(std::move(entry));
}

void Violations::Invalid(const std::string& field, const std::string& description) {
  Special("FIELD_INVALID", field, description);
}

void Violations::Conflict(const std::string& field, const std::string& description) {
  Special("FIELD_CONFLICT", field, description);
}

void Violations::Special(const std::string& reason, const std::string& field,
                         const std::string& description,
                         std::vector<std::pair<std::string, std::string>> metadata) {
  Add({Kind::kInvalid, reason, {field, description}, std::move(metadata)});
}

void Violations::Unsupported(const std::string& field) {
  Add({Kind::kUnsupported,
       "FIELD_UNSUPPORTED",
       {field, "not supported by this model or build"},
       {{"field", field}}});
}

void Violations::UnknownFields(const google::protobuf::Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const google::protobuf::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  const std::string& name = message.GetDescriptor()->full_name();
  for (int i = 0; i < unknown.field_count() && list_.size() < kMaxViolations; ++i) {
    const std::string number = absl::StrCat(unknown.field(i).number());
    Add({Kind::kUnknown,
         "FIELD_UNKNOWN",
         {absl::StrCat(name, "#", number), "unknown field number"},
         {{"message", name}, {"number", number}}});
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE || field->is_map())
      continue;
    if (!field->is_repeated()) {
      UnknownFields(reflection.GetMessage(message, field));
      continue;
    }
    const int size = reflection.FieldSize(message, field);
    for (int i = 0; i < size && list_.size() < kMaxViolations; ++i) {
      UnknownFields(reflection.GetRepeatedMessage(message, field, i));
    }
  }
}

absl::Status Violations::ToStatus() const {
  if (list_.empty()) return absl::OkStatus();
  const Entry& first = *std::min_element(
      list_.begin(), list_.end(), [](const Entry& a, const Entry& b) { return a.kind < b.kind; });
  ErrorInfo info{.reason = first.reason, .metadata = first.metadata, .violations = {}};
  for (const Entry& entry : list_) info.violations.push_back(entry.violation);
  std::string message = absl::StrCat(first.violation.field, ": ", first.violation.description);
  if (list_.size() > 1) absl::StrAppend(&message, " (and ", list_.size() - 1, " more)");
  return MakeError(first.kind == Kind::kInvalid ? absl::StatusCode::kInvalidArgument
                                                : absl::StatusCode::kUnimplemented,
                   message, info);
}

}  // namespace quire
