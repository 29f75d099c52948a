// JSON that a client sends inside a request field: checked and written again in one pass, without a
// tree, so that time is linear and the stack constant whatever it holds. Pure functions; any
// thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

inline constexpr int kMaxJsonDepth = 64;

struct JsonField {
  enum class Kind { kObject, kArray };
  std::string_view field;                  // path in the request, for errors
  Kind kind = Kind::kObject;               // what the text has to be
  std::vector<std::string_view> reserved;  // members that the object may not set
  std::function<std::string(std::string_view)>
      on_string;  // optional: replaces every string and key
};

// The JSON in compact form, members in their order. An empty text is {} or []. INVALID_ARGUMENT
// FIELD_INVALID naming the field if it is no JSON, of the other kind, nests deeper than
// kMaxJsonDepth or sets a reserved member.
absl::StatusOr<std::string> RewriteJson(const JsonField& field, std::string_view text);

// Appends `text`, which is valid UTF-8, as a JSON string.
void AppendJsonString(std::string_view text, std::string& out);

}  // namespace quire
