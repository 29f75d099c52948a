#include "runtime/text/chat_template.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_info.h"

namespace quire {
namespace {

using testing::HasSubstr;

ChatPrompt Say(std::string content) {
  ChatPrompt chat;
  chat.messages.push_back({.role = "user", .content = std::move(content), .extra_json = ""});
  return chat;
}

absl::StatusOr<std::string> Render(std::string_view source, const ChatPrompt& chat,
                                   const ChatTemplateOptions& options = {}) {
  auto compiled = ChatTemplate::Compile(source, options);
  if (!compiled.ok()) return compiled.status();
  return (*compiled)->Render(chat);
}

void ExpectTemplateFailed(const absl::Status& status, std::string_view part) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(GetErrorInfo(status).reason, "TEMPLATE_FAILED") << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(part)));
}

void ExpectField(const absl::Status& status, const std::string& field) {
  const ErrorInfo info = GetErrorInfo(status);
  EXPECT_EQ(info.reason, "FIELD_INVALID") << status;
  ASSERT_EQ(info.violations.size(), 1u) << status;
  EXPECT_EQ(info.violations[0].field, field);
}

TEST(ChatTemplate, RefusesASyntaxErrorWithItsLine) {
  const auto compiled = ChatTemplate::Compile("a\n{% for x in %}", {});
  EXPECT_EQ(compiled.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(compiled.status().message()), HasSubstr("line 2"));
}

TEST(ChatTemplate, RefusesAnUnknownFilterWhenItRuns) {
  const auto compiled = ChatTemplate::Compile("{{ 1 | nonsense }}", {});
  if (compiled.ok())
    ExpectTemplateFailed((*compiled)->Render(Say("x")).status(), "template failed");
}

TEST(ChatTemplate, RefusesASourceThatIsTooLongOrNotUtf8) {
  EXPECT_FALSE(ChatTemplate::Compile(std::string((1 << 20) + 1, 'x'), {}).ok());
  EXPECT_FALSE(ChatTemplate::Compile("\xFF", {}).ok());
}

TEST(ChatTemplate, RaisedMessagesReachTheClientCutAndClean) {
  ExpectTemplateFailed(Render("{{ raise_exception('Roles must\nalternate') }}", Say("x")).status(),
                       "Roles must alternate");
  const auto status = Render("{{ raise_exception('y' * 100000) }}", Say("x")).status();
  ExpectTemplateFailed(status, "yyy");
  EXPECT_LE(status.message().size(), 256u);
}

TEST(ChatTemplate, RaisedInAMacroIsStillItsOwn) {
  ExpectTemplateFailed(
      Render("{% macro m() %}{{ raise_exception('inner') }}{% endmacro %}{{ m() }}", Say("x"))
          .status(),
      "inner");
}

TEST(ChatTemplate, EndsALoopAtItsStepBudget) {
  const std::string_view loops =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% set c = a + b %}{% endfor %}{% "
      "endfor %}";
  ExpectTemplateFailed(Render(loops, Say("x")).status(), "steps");
  EXPECT_TRUE(Render("fine", Say("x"), {.bos_token = "", .eos_token = "", .max_steps = 50}).ok());
}

TEST(ChatTemplate, EndsARenderingAtItsOutputBudget) {
  const ChatTemplateOptions options{.bos_token = "", .eos_token = "", .max_output_bytes = 100};
  EXPECT_EQ(Render("{{ messages[0].content }}", Say(std::string(100, 'a')), options)->size(), 100u);
  ExpectTemplateFailed(
      Render("{{ messages[0].content }}", Say(std::string(101, 'a')), options).status(),
      "100 bytes");
}

TEST(ChatTemplate, EndsRecursionWithoutOverflowingTheStack) {
  ExpectTemplateFailed(Render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", Say("x")).status(),
                       "");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "(";
  EXPECT_FALSE(ChatTemplate::Compile("{{ " + deep + " }}", {}).ok());
}

TEST(ChatTemplate, SeesNoClockAndNoFiles) {
  EXPECT_EQ(*Render("{{ strftime_now is defined }}", Say("x")), "False");
  ExpectTemplateFailed(Render("{{ strftime_now('%Y') }}", Say("x")).status(), "");
  ExpectTemplateFailed(Render("{% include '/etc/hostname' %}", Say("x")).status(), "");
}

TEST(ChatTemplate, MergesExtraJsonIntoTheMessage) {
  ChatPrompt chat = Say("hi");
  chat.messages[0].extra_json = R"({"name": "Ann", "n": [1, null]})";
  EXPECT_EQ(*Render("{{ messages[0].name }} {{ messages[0] | tojson }}", chat),
            R"(Ann {"role": "user", "content": "hi", "name": "Ann", "n": [1, null]})");
}

TEST(ChatTemplate, RefusesJsonThatIsBadOrSetsWhatIsNotItsOwn) {
  for (const char* bad :
       {"[1]", "{", "{\"role\": \"x\"}", "{\"content\": 1}", "{\"a\": \"\xFF\"}"}) {
    ChatPrompt chat = Say("hi");
    chat.messages[0].extra_json = bad;
    ExpectField(Render("x", chat).status(), "prompt.chat.messages[0].extra_json");
  }
  for (const char* bad :
       {"[]", "{\"messages\": []}", "{\"tools\": 1}", "{\"bos_token\": 1}", "{\"eos_token\": 1}"}) {
    ChatPrompt chat = Say("hi");
    chat.template_arguments_json = bad;
    ExpectField(Render("x", chat).status(), "prompt.chat.template_arguments_json");
  }
  ChatPrompt chat = Say("hi");
  chat.tools_json = "{}";
  ExpectField(Render("x", chat).status(), "prompt.chat.tools_json");
}

TEST(ChatTemplate, BoundsTheDepthOfJson) {
  const auto nested = [](int depth) {
    ChatPrompt chat = Say("hi");
    chat.template_arguments_json =
        "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
    return chat;
  };
  EXPECT_TRUE(Render("x", nested(64)).ok());
  ExpectField(Render("x", nested(65)).status(), "prompt.chat.template_arguments_json");
  ExpectField(Render("x", nested(100'000)).status(), "prompt.chat.template_arguments_json");
}

TEST(ChatTemplate, RefusesNoMessagesAndInvalidUtf8) {
  ExpectField(Render("x", ChatPrompt{}).status(), "prompt.chat.messages");
  ExpectField(Render("x", Say("\xFF")).status(), "prompt.chat.messages[0]");
}

TEST(ChatTemplate, ContinuesTheFinalMessage) {
  ChatPrompt chat = Say("one, ");
  chat.messages[0].role = "assistant";
  chat.continue_final_message = true;
  EXPECT_EQ(*Render("<{{ messages[0].content }}>", chat), "<one, ");
  EXPECT_EQ(*Render("<{{ messages[0].content.strip() }}>{% if add_generation_prompt %}!{% endif %}",
                    chat),
            "<one,");
  ExpectTemplateFailed(Render("nothing of it", chat).status(), "final message");
}

TEST(ChatTemplate, KnowsWhetherItReadsTools) {
  EXPECT_TRUE((*ChatTemplate::Compile("{% if tools %}x{% endif %}", {}))->reads_tools());
  EXPECT_FALSE((*ChatTemplate::Compile("{{ message.tools_used }} my_tools", {}))->reads_tools());
}

}  // namespace
}  // namespace quire
