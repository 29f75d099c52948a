#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/cli/commands.h"
#include "server/cli/progress.h"
#include "server/cli/service.h"
#include "server/cli/signals.h"
#include "server/config/server_config.h"

namespace quire {
namespace {

constexpr int kPulseMillis = 1000;

// Below it some dozens of connections use up what there is, and gRPC's listener may not recover.
constexpr rlim_t kMinFiles = 256;

// Connections are file descriptors: take all that this process may have, and see that it is enough.
absl::Status RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::OkStatus();
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max >= kMinFiles) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the limit of open files (ulimit -n) is ", limit.rlim_max, ", wanted at least ", kMinFiles));
}

void PrintAddresses(const Service& service, const ServerConfig& config, double seconds) {
  for (const std::string& address : service.grpc_addresses()) {
    std::fprintf(stderr, "quire: gRPC on %s%s\n", address.c_str(),
                 config.reflection_on() ? ", with reflection" : "");
  }
  if (service.http_port() != 0) {
    const std::string host = config.http_listen.substr(0, config.http_listen.rfind(':'));
    std::fprintf(stderr, "quire: metrics on http://%s:%d/metrics\n", host.c_str(),
                 service.http_port());
  }
  if (config.trusted_network)
    std::fprintf(stderr, "quire: --trusted-network: whoever reaches the port is trusted\n");
  std::fprintf(stderr, "quire: ready after %.2f s\n", seconds);
}

int Serve(const ServerConfig& config) {
  const auto start = std::chrono::steady_clock::now();
  StopSignals signals;  // before any thread starts: they inherit the mask
  if (const absl::Status files = RaiseFileLimit(); !files.ok())
    return Fail(ExitCodeOf(files), std::string(files.message()));
  absl::StatusOr<std::unique_ptr<Service>> service = Service::Listen(config);
  if (!service.ok())
    return Fail(ExitCodeOf(service.status()), std::string(service.status().message()));
  signals.ExitAtOnce(kExitOk);  // nothing to drain while loading
  LoadProgress progress;
  const absl::Status loaded =
      (*service)->Load([&progress](size_t done, size_t total) { progress.Show(done, total); });
  progress.Finish();
  if (!loaded.ok()) return Fail(ExitCodeOf(loaded), std::string(loaded.message()));
  signals.Keep();
  std::fprintf(stderr, "%s\n", (*service)->Describe().c_str());
  PrintAddresses(**service, config,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  while (!signals.Wait(kPulseMillis)) {
    if ((*service)->CheckPulse()) continue;
    std::fprintf(stderr, "quire: the engine has work and makes no step; ending\n");
    (*service)->EndAtOnce();
    std::abort();
  }
  std::fprintf(stderr, "quire: draining; a second signal ends at once\n");
  signals.ExitAtOnce(kExitInterrupted, [&service] { (*service)->EndAtOnce(); });
  (*service)->Drain();
  signals.ExitAtOnce(kExitInterrupted);  // all lines are out, and the service goes away
  service->reset();
  std::fprintf(stderr, "quire: drained\n");
  return kExitOk;
}

}  // namespace

int RunServe(const Args& args) {
  CLI::App app("Serve a model over gRPC.", "quire serve");
  ConfigFlags flags;
  flags.AddTo(app);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const Environment environment = ProcessEnvironment();
  const absl::StatusOr<ServerConfig> config = flags.Resolve(environment);
  if (flags.print_config()) {  // and what serve would refuse, such as a missing model
    if (const auto text = flags.Print(environment); text.ok()) std::fputs(text->c_str(), stdout);
    std::fflush(stdout);
  }
  if (!config.ok())
    return Fail(ExitCodeOf(config.status()), std::string(config.status().message()));
  return flags.print_config() ? kExitOk : Serve(*config);
}

}  // namespace quire
