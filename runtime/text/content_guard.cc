#include "runtime/text/content_guard.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"
#include "runtime/base/status_macros.h"

namespace quire {
namespace {

// Bytes of the code point that begins at `at`. Text is valid UTF-8.
size_t CodePointSize(std::string_view text, size_t at) {
  size_t size = 1;
  while (at + size < text.size() && (static_cast<uint8_t>(text[at + size]) & 0xC0) == 0x80) ++size;
  return size;
}

}  // namespace

std::string ContentGuard::Break(std::string_view content) const {
  std::string out;
  out.reserve(content.size() + 2 * kMark.size());
  if (splitter_->BeginsInside(content)) out.append(kMark);
  size_t copied = 0;
  // Also inside another spelling: the mark breaks only the one it stands in.
  for (size_t at = 0; at < content.size(); ++at) {
    if (!splitter_->BeginsAt(content, at)) continue;
    const size_t cut = at + CodePointSize(content, at);
    if (cut <= copied) continue;
    out.append(content.substr(copied, cut - copied)).append(kMark);
    copied = cut;
  }
  out.append(content.substr(copied));
  return out;
}

absl::Status ContentGuard::BreakJson(JsonField field, std::string& json) const {
  if (json.empty()) return absl::OkStatus();
  bool marked = false;
  // Keys too: templates print whole objects. The names that a template looks up spell no control
  // token.
  field.on_string = [&](std::string_view text) {
    marked |= text.find(kMark) != std::string_view::npos;
    return Break(text);
  };
  ASSIGN_OR_RETURN(json, RewriteJson(field, json));
  return marked ? InvalidField(field.field, "holds U+FDD0") : absl::OkStatus();
}

absl::StatusOr<ChatPrompt> ContentGuard::BreakChat(const ChatPrompt& chat) const {
  ChatPrompt broken = chat;
  const auto json = [](std::string_view field, JsonField::Kind kind) {
    return JsonField{.field = field, .kind = kind, .reserved = {}, .on_string = {}};
  };
  for (size_t i = 0; i < broken.messages.size(); ++i) {
    ChatMessage& message = broken.messages[i];
    const std::string field = absl::StrCat("prompt.chat.messages[", i, "]");
    if (message.content.find(kMark) != std::string::npos) {
      return InvalidField(field + ".content", "holds U+FDD0");
    }
    message.content = Break(message.content);
    const std::string extra = field + ".extra_json";
    RETURN_IF_ERROR(BreakJson(json(extra, JsonField::Kind::kObject), message.extra_json));
  }
  RETURN_IF_ERROR(BreakJson(json("prompt.chat.template_arguments_json", JsonField::Kind::kObject),
                            broken.template_arguments_json));
  RETURN_IF_ERROR(
      BreakJson(json("prompt.chat.tools_json", JsonField::Kind::kArray), broken.tools_json));
  return broken;
}

std::string Mend(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t copied = 0;
  for (size_t at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark, copied)) {
    out.append(text.substr(copied, at - copied));
    copied = at + kMark.size();
  }
  out.append(text.substr(copied));
  return out;
}

}  // namespace quire
