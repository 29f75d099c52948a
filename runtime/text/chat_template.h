// A model's chat template: Jinja, compiled once, rendered under a step and an output budget. It
// sees no clock and no file. Immutable after Compile; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

struct ChatMessage {
  std::string role, content;
  std::string extra_json;  // JSON object merged into the message; empty = {}
};

struct ChatPrompt {
  std::vector<ChatMessage> messages;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  std::string template_arguments_json;  // JSON object of extra template variables; empty = {}
  std::string tools_json;               // JSON array; empty = none
};

struct ChatTemplateOptions {
  std::string bos_token, eos_token;  // spellings, for the template
  uint64_t max_steps = 1'000'000;
  size_t max_output_bytes = 4 << 20;
};

class ChatTemplate {
 public:
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Compile(std::string_view source,
                                                               const ChatTemplateOptions& options);
  ~ChatTemplate();

  // INVALID_ARGUMENT TEMPLATE_FAILED: raise_exception, budget, or bad JSON (FIELD_INVALID).
  absl::StatusOr<std::string> Render(const ChatPrompt& chat) const;
  bool reads_tools() const;  // the source mentions `tools`
  const std::string& source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
