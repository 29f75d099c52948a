// Machine-readable detail on an absl::Status: reason, field, metadata. The gRPC layer turns it into
// google.rpc.ErrorInfo and BadRequest; the command line prints it. Values only; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace quire {

struct FieldViolation {
  std::string field;        // path in the request, e.g. "sampling.top_p"
  std::string description;  // got, wanted
};

struct ErrorInfo {
  std::string reason;                                         // e.g. "PROMPT_TOO_LONG"
  std::vector<std::pair<std::string, std::string>> metadata;  // e.g. {"limit", "8192"}
  std::vector<FieldViolation> violations;                     // at most 16
  int64_t retry_delay_ms = -1;                                // >= 0: the client may retry after it
};

// A status that carries `info`; `message` is for people.
absl::Status MakeError(absl::StatusCode code, std::string_view message, const ErrorInfo& info);

// The info of a status, or an empty one (reason "") when it carries none.
ErrorInfo GetErrorInfo(const absl::Status& status);

// INVALID_ARGUMENT FIELD_INVALID for one field.
absl::Status InvalidField(std::string_view field, std::string_view description);

}  // namespace quire
