#include "runtime/text/chat_template.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/absl_view.h"
#include "runtime/base/error_info.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/bridge_call.h"
#include "runtime/text/json_field.h"
#include "runtime/text/utf8.h"

namespace quire {
namespace {

constexpr size_t kMaxSourceBytes = 1 << 20;
// Stands after the content of a final message that is to be continued; three U+FDD0, which no
// content holds.
constexpr std::string_view kCut = "\xEF\xB7\x90\xEF\xB7\x90\xEF\xB7\x90";
constexpr std::string_view kTemplateFailed = "TEMPLATE_FAILED";

absl::Status TemplateFailed(std::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, message,
                   {.reason = std::string(kTemplateFailed), .metadata = {}, .violations = {}});
}

// Appends `"key":` and the value.
void AppendKey(std::string_view key, std::string& out) {
  if (out.back() != '{') out.push_back(',');
  AppendJsonString(key, out);
  out.push_back(':');
}
void AppendMember(std::string_view key, std::string_view text, std::string& out) {
  AppendKey(key, out);
  AppendJsonString(text, out);
}
// Appends the members of `object`, JSON in compact form.
void AppendMembers(std::string_view object, std::string& out) {
  if (object.size() == 2) return;
  out.push_back(',');
  out.append(object.substr(1, object.size() - 2));
}

absl::Status AppendMessages(const ChatPrompt& chat, std::string& out) {
  AppendKey("messages", out);
  out.push_back('[');
  for (size_t i = 0; i < chat.messages.size(); ++i) {
    const ChatMessage& message = chat.messages[i];
    const std::string field = absl::StrCat("prompt.chat.messages[", i, "]");
    if (!IsValidUtf8(message.role) || !IsValidUtf8(message.content)) {
      return InvalidField(field, "not valid UTF-8");
    }
    const std::string extra_field = field + ".extra_json";
    ASSIGN_OR_RETURN(
        const std::string extra,
        RewriteJson({.field = extra_field, .reserved = {"role", "content"}, .on_string = {}},
                    message.extra_json));
    const bool is_cut = chat.continue_final_message && i + 1 == chat.messages.size();
    if (i > 0) out.push_back(',');
    out.push_back('{');
    AppendMember("role", message.role, out);
    AppendMember("content",
                 is_cut ? absl::StrCat(message.content, View(kCut), " ") : message.content, out);
    AppendMembers(extra, out);
    out.push_back('}');
  }
  out.push_back(']');
  return absl::OkStatus();
}

// The template's variables as a JSON object.
absl::StatusOr<std::string> VariablesOf(const ChatPrompt& chat,
                                        const ChatTemplateOptions& options) {
  std::string out = "{";
  RETURN_IF_ERROR(AppendMessages(chat, out));
  AppendKey("tools", out);
  if (chat.tools_json.empty()) {
    out += "null";
  } else {
    ASSIGN_OR_RETURN(const std::string tools, RewriteJson({.field = "prompt.chat.tools_json",
                                                           .kind = JsonField::Kind::kArray,
                                                           .reserved = {},
                                                           .on_string = {}},
                                                          chat.tools_json));
    out += tools;
  }
  AppendKey("documents", out);
  out += "null";
  AppendKey("add_generation_prompt", out);
  out += chat.add_generation_prompt && !chat.continue_final_message ? "true" : "false";
  AppendMember("bos_token", options.bos_token, out);
  AppendMember("eos_token", options.eos_token, out);
  ASSIGN_OR_RETURN(const std::string arguments,
                   RewriteJson({.field = "prompt.chat.template_arguments_json",
                                .reserved = {"messages", "tools", "bos_token", "eos_token",
                                             "add_generation_prompt"},
                                .on_string = {}},
                               chat.template_arguments_json));
  AppendMembers(arguments, out);
  out.push_back('}');
  return out;
}

bool IsIdentifierByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool MentionsWord(std::string_view source, std::string_view word) {
  for (size_t at = source.find(word); at != std::string_view::npos;
       at = source.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !IsIdentifierByte(source[at - 1]);
    const bool ends = end == source.size() || !IsIdentifierByte(source[end]);
    if (begins && ends) return true;
  }
  return false;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n\f\v";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

// The rendering up to the end of the final message. A template that trims the content has trimmed
// the space after the cut; then the content's own end is trimmed too.
absl::StatusOr<std::string> CutAtFinalMessage(std::string rendered, std::string_view content) {
  const size_t cut = rendered.rfind(kCut);
  if (cut == std::string::npos || rendered.find(Trim(content)) == std::string::npos) {
    return TemplateFailed("the template does not show the final message as it is");
  }
  const bool keeps_space = rendered.compare(cut + kCut.size(), 1, " ") == 0;
  rendered.resize(cut);
  if (!keeps_space) rendered.resize(rendered.find_last_not_of(" \t\r\n\f\v") + 1);
  return rendered;
}

}  // namespace

struct ChatTemplate::Impl {
  ~Impl() { quire_bridge_template_free(bridge); }
  std::string source;
  ChatTemplateOptions options;
  QuireBridgeTemplate* bridge = nullptr;
  bool reads_tools = false;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;

bool ChatTemplate::reads_tools() const { return impl_->reads_tools; }
const std::string& ChatTemplate::source() const { return impl_->source; }

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Compile(
    std::string_view source, const ChatTemplateOptions& options) {
  if (source.size() > kMaxSourceBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("chat template: ", source.size(), " bytes, at most ", kMaxSourceBytes));
  }
  auto impl = std::make_unique<Impl>();
  impl->source = source;
  impl->options = options;
  impl->reads_tools = MentionsWord(source, "tools");
  BridgeBytes error;
  RETURN_IF_ERROR(BridgeStatus(
      quire_bridge_template_new(ToSlice(source), &impl->bridge, error.out()), error, ""));
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(impl)));
}

absl::StatusOr<std::string> ChatTemplate::Render(const ChatPrompt& chat) const {
  if (chat.messages.empty()) return InvalidField("prompt.chat.messages", "empty, at least 1");
  ASSIGN_OR_RETURN(const std::string context, VariablesOf(chat, impl_->options));
  const QuireBridgeRender render = {.context_json = ToSlice(context),
                                    .max_steps = impl_->options.max_steps,
                                    .max_output_bytes = impl_->options.max_output_bytes};
  BridgeBytes out, error;
  RETURN_IF_ERROR(BridgeStatus(quire_bridge_render(impl_->bridge, &render, out.out(), error.out()),
                               error, kTemplateFailed));
  std::string rendered(out.view());
  if (chat.continue_final_message) {
    return CutAtFinalMessage(std::move(rendered), chat.messages.back().content);
  }
  return rendered;
}

}  // namespace quire
