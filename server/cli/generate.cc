#include <google/protobuf/util/json_util.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "server/cli/client.h"
#include "server/cli/commands.h"
#include "server/cli/output_text.h"
#include "server/cli/request_flags.h"
#include "server/config/server_config.h"

namespace quire {
namespace {

struct GenerateFlags {
  std::string prompt, file, system;
  bool chat = false, stats = false, json = false, parse_special = false;
};

void AddFlags(CLI::App& app, GenerateFlags* flags) {
  auto* prompt = app.add_option("-p,--prompt", flags->prompt, "prompt");
  app.add_option("-f,--file", flags->file, "file with the prompt; - is standard input")
      ->excludes(prompt);
  auto* chat = app.add_flag("--chat", flags->chat, "send the prompt as a user's chat message");
  app.add_option("--system", flags->system, "system message, with --chat")->needs(chat);
  app.add_flag("--parse-special-tokens", flags->parse_special,
               "read control tokens in the prompt as such");
  app.add_flag("--stats", flags->stats, "print token counts and speed to standard error");
  app.add_flag("--json", flags->json, "print one JSON object per message");
}

bool ReadPrompt(const GenerateFlags& flags, std::string* prompt) {
  if (flags.file.empty()) {
    *prompt = flags.prompt;
    return true;
  }
  if (flags.file == "-") {
    prompt->assign(std::istreambuf_iterator<char>(std::cin), {});
    return true;
  }
  std::ifstream in(flags.file, std::ios::binary);
  prompt->assign(std::istreambuf_iterator<char>(in), {});
  return in.is_open();
}

void SetPrompt(const GenerateFlags& flags, const std::string& text, v1::Prompt* prompt) {
  if (flags.parse_special) prompt->set_parse_special_tokens(true);
  if (!flags.chat) {
    prompt->set_text(text);
    return;
  }
  const auto add = [&](const char* role, const std::string& content) {
    v1::ChatMessage* message = prompt->mutable_chat()->add_messages();
    message->set_role(role);
    message->set_content(content);
  };
  if (!flags.system.empty()) add("system", flags.system);
  add("user", text);
}

std::string JsonLine(const v1::GenerateResponse& message) {
  std::string line;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  return google::protobuf::util::MessageToJsonString(message, &line, options).ok() ? line + "\n"
                                                                                   : "";
}

void Put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

int RunGenerate(const Args& args) {
  CLI::App app("Continue one prompt.", "quire generate");
  Target target;
  RequestFlags request_flags;
  GenerateFlags flags;
  target.AddFlags(app);
  request_flags.AddTo(app);
  request_flags.AddOutputsTo(app);
  AddFlags(app, &flags);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  std::string prompt;
  if (!ReadPrompt(flags, &prompt)) return Fail(kExitUsage, "cannot read " + flags.file);
  if (prompt.empty()) return Fail(kExitUsage, "no prompt: give -p TEXT or -f FILE");
  if (const absl::Status opened = target.Open(app.remaining()); !opened.ok()) {
    return Fail(ExitCodeOf(opened), std::string(opened.message()));
  }
  v1::GenerateRequest request;
  SetPrompt(flags, prompt, request.mutable_prompt());
  request_flags.Fill(&request);
  const bool several = request.sampling().num_outputs() > 1;
  if (several && !flags.json) request.mutable_output()->set_mode(v1::STREAM_MODE_FINAL);
  OutputText output(several);
  const absl::StatusOr<CallSummary> summary =
      RunCall(target, request, [&](const v1::GenerateResponse& message) {
        Put(flags.json ? JsonLine(message) : output.Take(message));
      });
  if (!flags.json) Put(output.End(summary.ok()));
  if (!summary.ok()) return FailCall(summary.status());
  if (flags.stats) std::fprintf(stderr, "%s\n", StatsLine(target.channel(), *summary).c_str());
  return kExitOk;
}

}  // namespace quire
