// The configuration of a server: flag over QUIRE_* variable over --config file over default, read
// once at start, every value checked. Plain struct; immutable after it is made.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace CLI {
class App;
}

namespace quire {

enum class ReflectionMode : uint8_t { kAuto, kOn, kOff };
struct TenantWeight {
  std::string name;
  double weight = 1;
  friend bool operator==(const TenantWeight&, const TenantWeight&) = default;
};

// The latency histograms of /metrics, without their prefix quire_.
inline constexpr std::array<std::string_view, 8> kLatencyFamilies = {
    "time_to_first_token_seconds",      "inter_token_latency_seconds",
    "time_per_output_token_seconds",    "request_duration_seconds",
    "request_intake_duration_seconds",  "request_queue_duration_seconds",
    "request_prefill_duration_seconds", "request_decode_duration_seconds"};
struct LatencyBuckets {
  std::string family;          // of kLatencyFamilies
  std::vector<double> bounds;  // seconds, strictly increasing, 1..64 of them
  friend bool operator==(const LatencyBuckets&, const LatencyBuckets&) = default;
};

enum class KvDtype : uint8_t { kAuto, kF32, kBf16, kInt8, kInt16 };

struct ServerConfig {
  std::string model;          // file; required
  std::string model_name;     // empty: from the file
  std::string chat_template;  // file that replaces the model's template; empty: the model's
  std::vector<std::string> listen = {"127.0.0.1:50051"};
  std::string http_listen = "127.0.0.1:8080";  // "off": no port
  bool trusted_network = false;
  ReflectionMode reflection = ReflectionMode::kAuto;
  bool ignore_unknown_fields = false;  // --unknown-fields=ignore
  // Resources.
  int64_t kv_cache_bytes = 0;  // 0: what the limit leaves, at most 2 GiB
  KvDtype kv_dtype = KvDtype::kAuto;
  int32_t threads = 0;        // 0: from quota and affinity
  std::string isa;            // empty: the best of this processor
  int32_t step_tokens = 128;  // token budget of a step
  // Scheduling.
  bool prefix_cache = true;
  bool fcfs = false;          // strict order of arrival: no priorities, no fair share
  int64_t ageing_ms = 5'000;  // a waiting request rises by one priority level in this time
  std::vector<TenantWeight> tenant_weights;  // shares of service; others have 1
  int64_t target_itl_ms = 0;        // inter-token time that steps are cut to; 0: fixed budget
  bool deadline_admission = false;  // refuse what cannot make its deadline
  // Limits (names of GetModel's Limits).
  int64_t max_prompt_bytes = 1 << 20;
  int32_t max_context = 0;  // 0: the model's
  int32_t max_outputs = 8;
  int32_t max_top_logprobs = 20;
  int32_t default_max_tokens = 512;
  int64_t max_request_ms = 600'000;
  int32_t max_running = 64;
  int32_t max_waiting = 256;
  int64_t max_waiting_tokens = 262'144;
  int64_t max_queue_ms = 120'000;
  int32_t max_calls = 0;  // 0: running + waiting + 64
  int64_t stream_buffer_bytes = 262'144;
  int64_t slow_reader_ms = 30'000;
  int64_t receive_message_bytes = 4 << 20;
  int32_t metadata_bytes = 16 << 10;
  bool request_log = true;                      // a line per request on standard error
  std::vector<LatencyBuckets> metrics_buckets;  // of histograms that have others than their own
  // Shutdown.
  absl::Duration drain_delay = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(60);

  int32_t effective_max_calls() const {
    return max_calls > 0 ? max_calls : max_running + max_waiting + 64;
  }
  // Sequences that may hold a place at once: in intake, queue and batch.
  int32_t max_live() const { return max_running + max_waiting; }
  bool reflection_on() const;  // auto: if every listener is loopback or a unix socket
};

using Environment = std::map<std::string, std::string>;
Environment ProcessEnvironment();  // the QUIRE_* variables of this process

// Registers the flags on a command-line parser (a subcommand), then resolves after it has parsed.
class ConfigFlags {
 public:
  ConfigFlags();
  ~ConfigFlags();
  void AddTo(CLI::App& app);  // once; `app` must not outlive this object

  // INVALID_ARGUMENT: a flag's value (exit 64). FAILED_PRECONDITION: variable, file, missing model,
  // bind policy (exit 78). Messages name the source, the key, what was found and what is wanted.
  absl::StatusOr<ServerConfig> Resolve(const Environment& environment) const;
  bool print_config() const;  // --print-config was given
  // One line per key: name = value (source), also of a configuration that lacks something. Errors
  // are those of Resolve: without its values nothing is known.
  absl::StatusOr<std::string> Print(const Environment& environment) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Parses and resolves in one go; `arguments` without the program and subcommand names.
absl::StatusOr<ServerConfig> ParseServerConfig(const std::vector<std::string>& arguments,
                                               const Environment& environment);

// 0 for OK, else the exit code of `quire serve`: 64 usage, 69 unavailable, 75, 78 configuration, 70
// the rest.
int ExitCodeOf(const absl::Status& status);

// True for unix: sockets and loopback addresses ("127.0.0.1:1", "[::1]:1", "localhost:1").
bool IsPrivateListener(std::string_view address);

}  // namespace quire
