// Renderings equal those of transformers' apply_chat_template (tests/golden/text).
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/base/error_info.h"
#include "runtime/text/chat_template.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

ChatPrompt ChatOf(const Json& json) {
  ChatPrompt chat;
  for (Json message : json["messages"]) {
    ChatMessage out{.role = message["role"], .content = message["content"], .extra_json = ""};
    message.erase("role");
    message.erase("content");
    if (!message.empty()) out.extra_json = message.dump();
    chat.messages.push_back(std::move(out));
  }
  chat.continue_final_message = json.value("continue_final_message", false);
  chat.add_generation_prompt = json.value("add_generation_prompt", !chat.continue_final_message);
  if (json.contains("tools")) chat.tools_json = json["tools"].dump();
  if (json.contains("arguments")) chat.template_arguments_json = json["arguments"].dump();
  return chat;
}

TEST(GoldenChats, RenderingsEqualTransformers) {
  std::ifstream in(QUIRE_GOLDEN_TEXT "/chats.json");
  const Json file = Json::parse(in);
  ASSERT_GE(file.size(), 40u);
  for (const Json& json : file) {
    SCOPED_TRACE(json["name"].get<std::string>());
    const auto chat_template =
        ChatTemplate::Compile(json["template"].get<std::string>(), {.bos_token = "<|im_start|>",
                                                                    .eos_token = "<|im_end|>",
                                                                    .max_steps = 100'000,
                                                                    .max_output_bytes = 1 << 20});
    ASSERT_TRUE(chat_template.ok()) << chat_template.status();
    const auto rendered = (*chat_template)->Render(ChatOf(json["chat"]));
    if (json["rendered"].is_null()) {
      EXPECT_EQ(rendered.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(GetErrorInfo(rendered.status()).reason, "TEMPLATE_FAILED");
    } else {
      ASSERT_TRUE(rendered.ok()) << rendered.status();
      EXPECT_EQ(*rendered, json["rendered"].get<std::string>());
    }
  }
}

}  // namespace
}  // namespace quire
