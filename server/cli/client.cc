#include "server/cli/client.h"

#include <grpcpp/create_channel.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "quire/v1/inference.grpc.pb.h"
#include "quire/v1/model.grpc.pb.h"
#include "runtime/base/error_info.h"
#include "runtime/base/ids.h"
#include "server/cli/counted.h"
#include "server/cli/progress.h"
#include "server/cli/service.h"
#include "server/config/server_config.h"
#include "server/engine/tenants.h"
#include "server/rpc/caller.h"
#include "server/rpc/status_map.h"

namespace quire {
namespace {

constexpr int kKeepaliveMillis = 60'000;

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Target::Target() = default;

Target::~Target() {
  channel_.reset();
  service_.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void Target::AddFlags(CLI::App& app) {
  auto* addr =
      app.add_option("--addr", addr_, "server: host:port or unix:PATH")->capture_default_str();
  app.add_option("--tenant", tenant_, "whose request it is [none]");
  app.add_option("--model", model_,
                 "model file: run the engine in this process; takes the flags of serve")
      ->excludes(addr);
  app.allow_extras();
}

absl::Status Target::Open(const std::vector<std::string>& server_flags) {
  // Checked here too: gRPC ends the process over metadata that it cannot send.
  if (!tenant_.empty() && !IsTenantName(tenant_)) {
    return absl::InvalidArgumentError("--tenant: wanted 1..64 characters of a-z 0-9 _ -");
  }
  if (model_.empty()) {
    if (!server_flags.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("unknown flag: ", server_flags[0]));
    }
    channel_ = MakeChannel(addr_);
    return absl::OkStatus();
  }
  std::string pattern = (std::filesystem::temp_directory_path() / "quire-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    return absl::InternalError("cannot make a temporary folder");
  folder_ = pattern;
  std::vector<std::string> arguments = server_flags;
  const std::string socket = absl::StrCat("unix:", folder_, "/socket");
  for (const std::string& a : {std::string("--model"), model_, std::string("--listen"), socket,
                               std::string("--http-listen"), std::string("off")}) {
    arguments.push_back(a);
  }
  absl::StatusOr<ServerConfig> config = ParseServerConfig(arguments, ProcessEnvironment());
  if (!config.ok()) return config.status();
  config->request_log = false;  // standard error is the command's
  absl::StatusOr<std::unique_ptr<Service>> service = Service::Listen(*config);
  if (!service.ok()) return service.status();
  service_ = *std::move(service);
  LoadProgress progress;
  const absl::Status loaded =
      service_->Load([&progress](size_t done, size_t total) { progress.Show(done, total); });
  progress.Finish();
  channel_ = MakeChannel(socket);
  return loaded;
}

absl::StatusOr<CallSummary> RunCall(
    const Target& target, const v1::GenerateRequest& request,
    const std::function<void(const v1::GenerateResponse&)>& on_message,
    const std::function<bool()>& cancelled) {
  const auto stub = v1::InferenceService::NewStub(target.channel());
  grpc::ClientContext context;
  if (!target.tenant().empty()) context.AddMetadata(kTenantKey, target.tenant());
  CallSummary summary;
  const auto start = std::chrono::steady_clock::now();
  const auto reader = stub->Generate(&context, request);
  v1::GenerateResponse message;
  while (reader->Read(&message)) {
    if (message.has_delta() && summary.first_text_s == 0)
      summary.first_text_s = SecondsSince(start);
    if (message.has_delta()) summary.text += message.delta().text();
    if (message.has_finished()) summary.finished = message.finished();
    if (message.has_usage()) summary.usage = message.usage();
    on_message(message);
    if (cancelled && cancelled()) context.TryCancel();
  }
  const absl::Status status = FromGrpcStatus(reader->Finish());
  summary.total_s = SecondsSince(start);
  if (!status.ok()) return status;
  return summary;
}

std::string StatsLine(const std::shared_ptr<grpc::Channel>& channel, const CallSummary& summary) {
  const uint32_t generated = summary.usage.completion_tokens() + summary.usage.stop_tokens();
  const double decode_s = static_cast<double>(summary.finished.timing().decode_us()) * 1e-6;
  std::string line = absl::StrFormat("prompt %s, generated %s; first token after %.1f ms",
                                     Counted(summary.usage.prompt_tokens(), "token"),
                                     Counted(generated, "token"), summary.first_text_s * 1e3);
  if (generated > 1 && decode_s > 0)
    absl::StrAppendFormat(&line, "; %.1f tokens/s", (generated - 1) / decode_s);
  const int32_t blocks = BlocksFor(static_cast<int32_t>(summary.usage.prompt_tokens() + generated));
  absl::StrAppendFormat(&line, "; %s", Counted(blocks, "KV block"));
  grpc::ClientContext context;
  v1::GetLoadResponse load;
  if (v1::ModelService::NewStub(channel)->GetLoad(&context, {}, &load).ok()) {
    absl::StrAppendFormat(&line, " of %d", load.total_blocks());
  }
  return line;
}

int FailCall(const absl::Status& status) {
  const ErrorInfo info = GetErrorInfo(status);
  const std::string reason = info.reason.empty() ? "" : absl::StrCat(" [", info.reason, "]");
  std::fprintf(stderr, "quire: %s%s: %s\n", absl::StatusCodeToString(status.code()).c_str(),
               reason.c_str(), std::string(status.message()).c_str());
  for (size_t i = 1; i < info.violations.size(); ++i) {  // the message tells the first
    const FieldViolation& v = info.violations[i];
    std::fprintf(stderr, "  %s: %s\n", v.field.c_str(), v.description.c_str());
  }
  return ExitCodeOfCall(status);
}

}  // namespace quire
