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

absl::Status ContentGuard::BreakJson(std::string_view field, std::string& json) const {
  if (json.empty()) return absl::OkStatus();
  auto parsed = json.find_first_not_of(" \t\r\n") != std::string::npos &&
                        json[json.find_first_not_of(" \t\r\n")] == '['
                    ? ParseJsonArray(field, json)
                    : ParseJsonObject(field, json);
  RETURN_IF_ERROR(parsed.status());
  // Keys too: templates print whole objects. The names that a template looks up spell no control token.
  bool marked = false;
  const auto broken = [&](const std::string& text) {
    marked |= text.find(kMark) != std::string::npos;
    return Break(text);
  };
  const auto walk = [&](auto&& self, const OrderedJson& value) -> OrderedJson {  // as deep as the parser allows
    if (value.is_string()) return broken(value.get_ref<const std::string&>());
    if (!value.is_structured()) return value;
    OrderedJson out = value.is_array() ? OrderedJson::array() : OrderedJson::object();
    for (const auto& item : value.items()) {
      if (value.is_array()) {
        out.push_back(self(self, item.value()));
      } else {
        out[broken(item.key())] = self(self, item.value());
      }
    }
    return out;
  };
  const OrderedJson out = walk(walk, *parsed);
  if (marked) return InvalidField(field, "holds U+FDD0");
  json = DumpJson(out);
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
