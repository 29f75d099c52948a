#include "runtime/text/prompt_encoder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"
#include "runtime/base/status_macros.h"

namespace quire {
namespace {

ControlSplitter ControlTokensOf(const Tokenizer& tokenizer) {
  std::vector<ControlSplitter::Entry> entries;
  for (int32_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const TokenId id{i};
    if (tokenizer.IsControl(id)) entries.push_back({std::string(tokenizer.Spelling(id)), id});
  }
  return ControlSplitter(std::move(entries));
}

// Keeps leading special tokens and the last tokens, `limit` in all.
void Truncate(std::vector<TokenSpan>& tokens, size_t limit) {
  if (tokens.size() <= limit) return;
  const auto first_plain = std::ranges::find_if_not(tokens, &TokenSpan::special);
  const size_t leading = std::min(limit, static_cast<size_t>(first_plain - tokens.begin()));
  tokens.erase(tokens.begin() + leading, tokens.end() - (limit - leading));
}

}  // namespace

PromptEncoder::PromptEncoder(const Tokenizer* tokenizer, const ChatTemplate* chat)
    : tokenizer_(tokenizer), chat_(chat), control_(ControlTokensOf(*tokenizer)) {
  const auto empty =
      tokenizer->Encode("", {.add_special_tokens = true, .parse_special_tokens = false});
  adds_bos_ = empty.ok() && !empty->empty() && empty->front().id == tokenizer->bos();
}

size_t BytesOf(const PromptSource& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt.source)) return text->size();
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt.source)) return ids->size();
  const auto& chat = std::get<ChatPrompt>(prompt.source);
  size_t bytes = chat.template_arguments_json.size() + chat.tools_json.size();
  for (const ChatMessage& message : chat.messages)
    bytes += message.content.size() + message.extra_json.size();
  return bytes;
}

absl::StatusOr<EncodedPrompt> PromptEncoder::Encode(const PromptSource& prompt,
                                                    int64_t max_tokens) const {
  if (prompt.truncate_to_tokens.has_value()) max_tokens = INT64_MAX;
  absl::StatusOr<EncodedPrompt> out;
  if (const auto* text = std::get_if<std::string>(&prompt.source)) {
    out = EncodeText(*text, prompt, max_tokens);
  } else if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt.source)) {
    out = EncodeIds(*ids);
  } else {
    out = EncodeChat(std::get<ChatPrompt>(prompt.source), prompt, max_tokens);
  }
  RETURN_IF_ERROR(out.status());
  if (out->at_least > 0) return out;
  if (out->tokens.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "the prompt has no token",
                     {.reason = "PROMPT_EMPTY", .metadata = {}, .violations = {}});
  }
  if (prompt.truncate_to_tokens.has_value()) {
    if (*prompt.truncate_to_tokens < 1) return InvalidField("prompt.truncate_to_tokens", "below 1");
    Truncate(out->tokens, static_cast<size_t>(*prompt.truncate_to_tokens));
  }
  return out;
}

absl::StatusOr<EncodedPrompt> PromptEncoder::EncodeText(const std::string& text,
                                                        const PromptSource& prompt,
                                                        int64_t max_tokens) const {
  EncodedPrompt out;
  if (const int64_t n = tokenizer_->AtLeastTokens(text); n > max_tokens)
    return EncodedPrompt{.at_least = n};
  ASSIGN_OR_RETURN(out.tokens,
                   tokenizer_->Encode(text, {.add_special_tokens = prompt.add_special_tokens,
                                             .parse_special_tokens = prompt.parse_special_tokens}));
  return out;
}

absl::StatusOr<EncodedPrompt> PromptEncoder::EncodeIds(const std::vector<TokenId>& ids) const {
  EncodedPrompt out;
  out.tokens.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<int32_t>(ids[i]);
    if (id < 0 || id >= tokenizer_->vocab_size()) {
      return InvalidField(
          absl::StrCat("prompt.tokens.ids[", i, "]"),
          absl::StrCat(id, ", the vocabulary has ", tokenizer_->vocab_size(), " ids"));
    }
    out.tokens.push_back(
        {.id = ids[i], .begin_byte = 0, .end_byte = 0, .special = tokenizer_->IsControl(ids[i])});
  }
  return out;
}

absl::Status PromptEncoder::AppendSegment(std::string_view segment, EncodedPrompt& out) const {
  const auto begin = static_cast<int32_t>(out.rendered.size());
  const std::string mended = Mend(segment);
  ASSIGN_OR_RETURN(
      const std::vector<TokenSpan> tokens,
      tokenizer_->Encode(mended, {.add_special_tokens = false, .parse_special_tokens = false}));
  for (TokenSpan span : tokens) {
    span.begin_byte += begin;
    span.end_byte += begin;
    out.tokens.push_back(span);
  }
  out.rendered += mended;
  return absl::OkStatus();
}

absl::StatusOr<EncodedPrompt> PromptEncoder::EncodeChat(const ChatPrompt& chat,
                                                        const PromptSource& prompt,
                                                        int64_t max_tokens) const {
  if (chat_ == nullptr) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "the model has no chat template",
                     {.reason = "NO_CHAT_TEMPLATE", .metadata = {}, .violations = {}});
  }
  // Also where nothing is to be broken: it refuses content that holds our mark.
  ASSIGN_OR_RETURN(const ChatPrompt broken, guard_.BreakChat(chat));
  ASSIGN_OR_RETURN(const std::string rendered,
                   chat_->Render(prompt.parse_special_tokens ? chat : broken));
  if (const int64_t n = tokenizer_->AtLeastTokens(Mend(rendered)); n > max_tokens)
    return EncodedPrompt{.at_least = n};
  EncodedPrompt out;
  for (size_t at = 0; at < rendered.size();) {
    const ControlSplitter::Match match = control_.Next(rendered, at);
    const size_t plain_end = match.end == 0 ? rendered.size() : match.begin;
    RETURN_IF_ERROR(AppendSegment(std::string_view(rendered).substr(at, plain_end - at), out));
    if (match.end == 0) break;
    const auto begin = static_cast<int32_t>(out.rendered.size());
    out.rendered.append(rendered, match.begin, match.end - match.begin);
    out.tokens.push_back({.id = match.id,
                          .begin_byte = begin,
                          .end_byte = static_cast<int32_t>(out.rendered.size()),
                          .special = true});
    at = match.end;
  }
  if (adds_bos_ && (out.tokens.empty() || out.tokens.front().id != tokenizer_->bos())) {
    out.tokens.insert(out.tokens.begin(),
                      {.id = tokenizer_->bos(), .begin_byte = 0, .end_byte = 0, .special = true});
  }
  return out;
}

}  // namespace quire
