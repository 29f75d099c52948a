#include "server/rpc/validate_prompt.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr int kMaxMessages = 256;
constexpr size_t kMaxRoleBytes = 32;
constexpr size_t kMaxMessageJsonBytes = 16 << 10;
constexpr size_t kMaxArgumentsJsonBytes = 16 << 10;
constexpr size_t kMaxToolsJsonBytes = 64 << 10;

bool IsRole(const std::string& role) {
  return !role.empty() && role.size() <= kMaxRoleBytes &&
         std::all_of(role.begin(), role.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

void CheckSize(size_t size, size_t limit, const std::string& field, Violations* v) {
  if (!(size <= limit))
    v->Invalid(field, absl::StrCat("got ", size, " bytes, wanted at most ", limit));
}

void CheckPromptBytes(size_t size, const std::string& field, const RequestLimits& limits,
                      Violations* v) {
  if (size <= static_cast<size_t>(limits.max_prompt_bytes)) return;
  v->Special("PROMPT_BYTES", field,
             absl::StrCat("got ", size, " bytes, wanted at most ", limits.max_prompt_bytes),
             {{"actual", absl::StrCat(size)}, {"limit", absl::StrCat(limits.max_prompt_bytes)}});
}

ChatPrompt ReadChat(const v1::Chat& chat, const RequestLimits& limits, Violations* v) {
  ChatPrompt out;
  const std::string base = "prompt.chat";
  if (!(chat.messages_size() >= 1 && chat.messages_size() <= kMaxMessages)) {
    v->Invalid(base + ".messages",
               absl::StrCat("got ", chat.messages_size(), ", wanted 1..", kMaxMessages));
    return out;
  }
  size_t bytes = 0;
  for (int i = 0; i < chat.messages_size(); ++i) {
    const v1::ChatMessage& message = chat.messages(i);
    const std::string path = absl::StrCat(base, ".messages[", i, "]");
    if (!IsRole(message.role())) v->Invalid(path + ".role", "wanted 1..32 characters of a-z 0-9 _");
    CheckSize(message.extra_json().size(), kMaxMessageJsonBytes, path + ".extra_json", v);
    bytes += message.content().size();
    out.messages.push_back({message.role(), message.content(), message.extra_json()});
  }
  CheckPromptBytes(bytes, base + ".messages", limits, v);
  out.continue_final_message = chat.continue_final_message();
  out.add_generation_prompt =
      chat.has_add_generation_prompt() ? chat.add_generation_prompt() : !out.continue_final_message;
  if (out.continue_final_message && chat.add_generation_prompt()) {
    v->Conflict(base + ".continue_final_message",
                "not with prompt.chat.add_generation_prompt = true");
  }
  if (out.continue_final_message && out.messages.back().role != "assistant") {
    v->Invalid(base + ".continue_final_message",
               absl::StrCat("the last message is of role ", out.messages.back().role,
                            ", wanted assistant"));
  }
  CheckSize(chat.template_arguments_json().size(), kMaxArgumentsJsonBytes,
            base + ".template_arguments_json", v);
  out.template_arguments_json = chat.template_arguments_json();
  CheckSize(chat.tools_json().size(), kMaxToolsJsonBytes, base + ".tools_json", v);
  if (!chat.tools_json().empty() && !limits.template_reads_tools)
    v->Unsupported(base + ".tools_json");
  out.tools_json = chat.tools_json();
  return out;
}

}  // namespace

std::vector<TokenId> ReadTokenIds(const v1::TokenIds& tokens, const std::string& field,
                                  int max_count, const RequestLimits& limits,
                                  Violations* violations) {
  std::vector<TokenId> out;
  if (tokens.ids_size() > max_count) {
    violations->Invalid(
        field, absl::StrCat("got ", tokens.ids_size(), " ids, wanted at most ", max_count));
    return out;
  }
  out.reserve(tokens.ids_size());
  for (int i = 0; i < tokens.ids_size(); ++i) {
    if (!(tokens.ids(i) < static_cast<uint32_t>(limits.vocab_size))) {
      violations->Invalid(
          absl::StrCat(field, ".ids[", i, "]"),
          absl::StrCat("got ", tokens.ids(i), ", wanted less than ", limits.vocab_size));
      return out;
    }
    out.push_back(static_cast<TokenId>(tokens.ids(i)));
  }
  return out;
}

PromptSource ReadPrompt(const v1::Prompt* prompt, const RequestLimits& limits, Violations* v) {
  PromptSource out;
  if (prompt == nullptr || prompt->source_case() == v1::Prompt::SOURCE_NOT_SET) {
    v->Invalid("prompt", "wanted text, tokens or chat");
    return out;
  }
  const bool is_text = prompt->has_text();
  const bool is_tokens = prompt->has_tokens();
  if (is_text) {
    if (prompt->text().empty()) v->Special("PROMPT_EMPTY", "prompt.text", "got no text");
    CheckPromptBytes(prompt->text().size(), "prompt.text", limits, v);
    out.source = prompt->text();
  } else if (is_tokens) {
    const int count = prompt->tokens().ids_size();
    if (count == 0) v->Special("PROMPT_EMPTY", "prompt.tokens", "got no ids");
    if (count >= limits.context_tokens && !prompt->has_truncate_to_tokens()) {
      v->Special(
          "PROMPT_TOO_LONG", "prompt.tokens",
          absl::StrCat("got ", count, " ids, wanted at most ", limits.context_tokens - 1),
          {{"actual", absl::StrCat(count)}, {"limit", absl::StrCat(limits.context_tokens - 1)}});
    } else {
      out.source = ReadTokenIds(prompt->tokens(), "prompt.tokens", INT32_MAX, limits, v);
    }
  } else {
    out.source = ReadChat(prompt->chat(), limits, v);
  }
  if (prompt->has_add_special_tokens()) {
    out.add_special_tokens = prompt->add_special_tokens();
    if (!is_text) v->Conflict("prompt.add_special_tokens", "only with prompt.text");
  }
  if (prompt->has_parse_special_tokens()) {
    out.parse_special_tokens = prompt->parse_special_tokens();
    if (is_tokens) v->Conflict("prompt.parse_special_tokens", "not with prompt.tokens");
  }
  if (prompt->has_truncate_to_tokens()) {
    const uint32_t keep = prompt->truncate_to_tokens();
    if (!(keep >= 1 && keep < static_cast<uint32_t>(limits.context_tokens))) {
      v->Invalid("prompt.truncate_to_tokens",
                 absl::StrCat("got ", keep, ", wanted 1..", limits.context_tokens - 1));
    } else if (prompt->has_chat()) {
      v->Conflict("prompt.truncate_to_tokens", "not with prompt.chat");
    }
    out.truncate_to_tokens = static_cast<int32_t>(std::min<uint32_t>(keep, INT32_MAX));
  }
  return out;
}

}  // namespace quire
