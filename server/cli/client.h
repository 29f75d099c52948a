// What generate and chat share as gRPC clients: the channel, who calls, one Generate call printed
// as it streams, and the engine in process for --model. One thread.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "quire/v1/inference.pb.h"
#include "server/cli/commands.h"

namespace CLI {
class App;
}

namespace quire {

class Service;

// A server to talk to, and as whom: one at an address, or one of our own in this process.
class Target {
 public:
  // --addr, --tenant and --model. With --model, flags that the command does not know go to the
  // server.
  void AddFlags(CLI::App& app);
  // After parsing. Starts the server for --model. INVALID_ARGUMENT for a flag.
  absl::Status Open(const std::vector<std::string>& server_flags);
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  const std::string& tenant() const { return tenant_; }  // empty: none is named

  Target();
  ~Target();

 private:
  std::string addr_ = "127.0.0.1:50051";
  std::string tenant_, model_;
  std::string folder_;  // of the private socket
  std::unique_ptr<Service> service_;
  std::shared_ptr<grpc::Channel> channel_;
};

struct CallSummary {
  v1::Usage usage;
  v1::Finished finished;
  std::string text;
  double first_text_s = 0, total_s = 0;  // from the call's start
};

// Runs one Generate call; `on_message` sees each message as it comes. `cancelled` is asked after
// each message.
absl::StatusOr<CallSummary> RunCall(
    const Target& target, const v1::GenerateRequest& request,
    const std::function<void(const v1::GenerateResponse&)>& on_message,
    const std::function<bool()>& cancelled = nullptr);

// One line for --stats.
std::string StatsLine(const std::shared_ptr<grpc::Channel>& channel, const CallSummary& summary);

// Prints a failed call for people and returns its exit code.
int FailCall(const absl::Status& status);

}  // namespace quire
