#include "runtime/text/content_guard.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/json_field.h"

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
  const size_t open = content.size() - splitter_->OpenSuffix(content);
  size_t copied = 0;
  // Every place where a spelling begins, also inside another one, for a mark may break only the first.
  for (size_t at = 0; at < content.size(); ++at) {
    if (at != open && splitter_->MatchAt(content, at).end == 0) continue;
    const size_t cut = at + CodePointSize(content, at);
    if (cut <= copied) continue;
    out.append(content.substr(copied, cut - copied)).append(kMark);
    copied = cut;
  }
  out.append(content.substr(copied));
  return out;
}

absl::Status ContentGuard::BreakJson(std::string_view field, std::string& json) const {
  if (json.empty()) return absl::OkStatus();
  auto parsed = json.find_first_not_of(" \t\r\n") != std::string::npos &&
                        json[json.find_first_not_of(" \t\r\n")] == '['
                    ? ParseJsonArray(field, json)
                    : ParseJsonObject(field, json);
  RETURN_IF_ERROR(parsed.status());
  bool marked = false;
  // Depth is bounded by the parser; keys are names that a template looks up, so only values are broken.
  const auto walk = [&](auto&& self, OrderedJson& value) -> void {
    if (value.is_string()) {
      std::string& text = value.get_ref<std::string&>();
      marked |= text.find(kMark) != std::string::npos;
      text = Break(text);
    } else if (value.is_structured()) {
      for (auto& item : value.items()) {
        marked |= item.key().find(kMark) != std::string::npos;
        self(self, item.value());
      }
    }
  };
  walk(walk, *parsed);
  if (marked) return InvalidField(field, "holds U+FDD0");
  json = DumpJson(*parsed);
  return absl::OkStatus();
}

absl::StatusOr<ChatPrompt> ContentGuard::BreakChat(const ChatPrompt& chat) const {
  ChatPrompt broken = chat;
  for (size_t i = 0; i < broken.messages.size(); ++i) {
    ChatMessage& message = broken.messages[i];
    const std::string field = absl::StrCat("prompt.chat.messages[", i, "]");
    if (message.content.find(kMark) != std::string::npos) {
      return InvalidField(field + ".content", "holds U+FDD0");
    }
    message.content = Break(message.content);
    RETURN_IF_ERROR(BreakJson(field + ".extra_json", message.extra_json));
  }
  RETURN_IF_ERROR(BreakJson("prompt.chat.template_arguments_json", broken.template_arguments_json));
  RETURN_IF_ERROR(BreakJson("prompt.chat.tools_json", broken.tools_json));
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
