// Keeps control tokens that a client spells in chat content from becoming control tokens (rule S3):
// content is broken with the noncharacter U+FDD0 before the template sees it, and the rendering is
// mended after it was split at the control tokens that are left, which are the template's own.
// Immutable; any thread.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/control_splitter.h"
#include "runtime/text/json_field.h"

namespace quire {

inline constexpr std::string_view kMark = "\xEF\xB7\x90";  // U+FDD0

class ContentGuard {
 public:
  explicit ContentGuard(const ControlSplitter* splitter) : splitter_(splitter) {}

  // `content` with a mark in every control token it spells, begins to spell at its end, or ends at
  // its start.
  std::string Break(std::string_view content) const;

  // Content, extra JSON, tools and template arguments of `chat` broken. INVALID_ARGUMENT
  // FIELD_INVALID for a field that holds the mark, or is not JSON.
  absl::StatusOr<ChatPrompt> BreakChat(const ChatPrompt& chat) const;

 private:
  absl::Status BreakJson(JsonField field, std::string& json) const;
  const ControlSplitter* splitter_;
};

// `text` without its marks.
std::string Mend(std::string_view text);

}  // namespace quire
