// Collects what is wrong with a request, so that one reply lists it all (at most 16). One owner,
// one thread.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/error_info.h"

namespace quire {

class Violations {
 public:
  // INVALID_ARGUMENT FIELD_INVALID: a value that can never be served.
  void Invalid(const std::string& field, const std::string& description);
  // INVALID_ARGUMENT FIELD_CONFLICT: fields that exclude each other; the description names the
  // other one.
  void Conflict(const std::string& field, const std::string& description);
  // INVALID_ARGUMENT with a reason of its own and its numbers.
  void Special(const std::string& reason, const std::string& field, const std::string& description,
               std::vector<std::pair<std::string, std::string>> metadata = {});
  // UNIMPLEMENTED FIELD_UNSUPPORTED: a known field that this model or build cannot honour.
  void Unsupported(const std::string& field);
  // UNIMPLEMENTED FIELD_UNKNOWN for each unknown field number in `message`, at any depth.
  void UnknownFields(const google::protobuf::Message& message);

  bool empty() const { return list_.empty(); }
  // OK, or the error with everything that was found. Unknown fields decide the code first (the rest
  // of such a request cannot be judged), then invalid values, then unsupported fields.
  absl::Status ToStatus() const;

 private:
  enum class Kind : uint8_t { kUnknown, kInvalid, kUnsupported };
  struct Entry {
    Kind kind;
    std::string reason;
    FieldViolation violation;
    std::vector<std::pair<std::string, std::string>> metadata;
  };
  void Add(Entry entry);
  std::vector<Entry> list_;
};

}  // namespace quire
