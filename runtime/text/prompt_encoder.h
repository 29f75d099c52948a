// The one path from a prompt to ids (text, ready ids, or chat): every RPC and command goes through
// it. Immutable after construction; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/content_guard.h"
#include "runtime/text/control_splitter.h"
#include "runtime/text/tokenizer.h"

namespace quire {

struct PromptSource {
  std::variant<std::string, std::vector<TokenId>, ChatPrompt> source;
  bool add_special_tokens = true;             // text only
  bool parse_special_tokens = false;          // text and chat content
  std::optional<int32_t> truncate_to_tokens;  // keeps leading special tokens and the last tokens
};

// What encoding has to work on, in bytes; an id counts as one.
size_t BytesOf(const PromptSource& prompt);

struct EncodedPrompt {
  std::vector<TokenSpan> tokens{};  // >= 1, unless the prompt was given up
  std::string rendered{};           // the template's output, for chat
  int64_t at_least = 0;             // > 0: given up before encoding; it has so many tokens or more
};

class PromptEncoder {
 public:
  // `chat` may be null: the model has no chat template. Both outlive the encoder.
  PromptEncoder(const Tokenizer* tokenizer, const ChatTemplate* chat);
  PromptEncoder(const PromptEncoder&) = delete;
  PromptEncoder& operator=(const PromptEncoder&) = delete;

  // INVALID_ARGUMENT PROMPT_EMPTY, FIELD_INVALID, TEMPLATE_FAILED; FAILED_PRECONDITION
  // NO_CHAT_TEMPLATE. A text whose bytes alone make more than `max_tokens` is not encoded.
  absl::StatusOr<EncodedPrompt> Encode(const PromptSource& prompt,
                                       int64_t max_tokens = INT64_MAX) const;

 private:
  absl::StatusOr<EncodedPrompt> EncodeText(const std::string& text, const PromptSource& prompt,
                                           int64_t max_tokens) const;
  absl::StatusOr<EncodedPrompt> EncodeIds(const std::vector<TokenId>& ids) const;
  absl::StatusOr<EncodedPrompt> EncodeChat(const ChatPrompt& chat, const PromptSource& prompt,
                                           int64_t max_tokens) const;
  absl::Status AppendSegment(std::string_view segment, EncodedPrompt& out) const;

  const Tokenizer* tokenizer_;
  const ChatTemplate* chat_;
  ControlSplitter control_;  // all control tokens of the vocabulary
  ContentGuard guard_{&control_};
  bool adds_bos_ = false;  // the tokenizer prescribes a BOS
};

}  // namespace quire
