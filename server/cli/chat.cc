#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/cli/client.h"
#include "server/cli/commands.h"
#include "server/cli/request_flags.h"
#include "server/config/server_config.h"

namespace quire {
namespace {

volatile std::sig_atomic_t interrupts = 0;

// Ctrl-C ends the answer that is being written; with none, or twice, the chat.
void OnInterrupt(int) { interrupts = interrupts + 1; }

class Conversation {
 public:
  explicit Conversation(std::string system) : system_(std::move(system)) { Reset(); }

  void Reset() {
    chat_.Clear();
    if (!system_.empty()) Add("system", system_);
  }
  void SetSystem(const std::string& text) {
    system_ = text;
    Reset();
  }
  void Add(const std::string& role, const std::string& content) {
    v1::ChatMessage* message = chat_.add_messages();
    message->set_role(role);
    message->set_content(content);
  }
  void DropLast() { chat_.mutable_messages()->RemoveLast(); }
  const v1::Chat& chat() const { return chat_; }

 private:
  std::string system_;
  v1::Chat chat_;
};

struct ChatState {
  Conversation conversation;
  v1::GenerateRequest base;
  CallSummary last{};
};

bool Save(const Conversation& conversation, const std::string& file) {
  std::ofstream out(file);
  for (const v1::ChatMessage& message : conversation.chat().messages()) {
    out << message.role() << ": " << message.content() << "\n";
  }
  return out.good();
}

// Commands start with a slash. False: the chat ends.
bool RunCommand(const std::string& line, ChatState* state) {
  const size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  uint64_t seed = 0;
  if (name == "/exit") return false;
  if (name == "/reset") {
    state->conversation.Reset();
  } else if (name == "/system") {
    state->conversation.SetSystem(rest);
  } else if (name == "/seed" && absl::SimpleAtoi(rest, &seed)) {
    state->base.mutable_sampling()->set_seed(seed);
  } else if (name == "/tokens") {
    std::fprintf(stderr, "prompt %u, answer %u tokens\n", state->last.usage.prompt_tokens(),
                 state->last.usage.completion_tokens());
  } else if (name == "/save" && !rest.empty()) {
    if (!Save(state->conversation, rest)) std::fprintf(stderr, "cannot write %s\n", rest.c_str());
  } else {
    std::fprintf(stderr, "commands: /reset /system TEXT /seed N /save FILE /tokens /exit\n");
  }
  return true;
}

// One turn. The answer joins the conversation, also one that was cut short; a failed turn leaves it
// as it was.
absl::Status Turn(const Target& target, const std::string& text, ChatState* state) {
  state->conversation.Add("user", text);
  v1::GenerateRequest request = state->base;
  *request.mutable_prompt()->mutable_chat() = state->conversation.chat();
  interrupts = 0;
  std::string answer;
  const absl::StatusOr<CallSummary> summary = RunCall(
      target, request,
      [&answer](const v1::GenerateResponse& message) {
        answer += message.delta().text();
        std::fwrite(message.delta().text().data(), 1, message.delta().text().size(), stdout);
        std::fflush(stdout);
      },
      [] { return interrupts > 0; });
  std::printf("\n");
  std::fflush(stdout);
  if (summary.ok()) state->last = *summary;
  if (summary.ok() || (interrupts > 0 && !answer.empty())) {
    state->conversation.Add("assistant", answer);
    return absl::OkStatus();
  }
  state->conversation.DropLast();
  return interrupts > 0 ? absl::OkStatus() : summary.status();
}

int Talk(const Target& target, ChatState* state) {
  const bool terminal = isatty(STDIN_FILENO) == 1;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;  // without SA_RESTART: a waiting read ends
  if (terminal) sigaction(SIGINT, &action, nullptr);
  std::string line;
  while (true) {
    if (terminal) std::fprintf(stderr, "> ");
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    if (line[0] == '/') {
      if (!RunCommand(line, state)) break;
      continue;
    }
    const absl::Status status = Turn(target, line, state);
    if (interrupts > 1) return kExitInterrupted;
    if (!status.ok()) {
      const int code = FailCall(status);
      if (!terminal) return code;
    }
  }
  return kExitOk;
}

}  // namespace

int RunChat(const Args& args) {
  CLI::App app("Talk with a model. Commands: /reset /system /seed /save /tokens /exit.",
               "quire chat");
  Target target;
  RequestFlags request_flags;
  std::string system;
  target.AddFlags(app);
  request_flags.AddTo(app);
  app.add_option("--system", system, "system message");
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (const absl::Status opened = target.Open(app.remaining()); !opened.ok()) {
    return Fail(ExitCodeOf(opened), std::string(opened.message()));
  }
  ChatState state{.conversation = Conversation(system), .base = {}};
  request_flags.Fill(&state.base);
  return Talk(target, &state);
}

}  // namespace quire
