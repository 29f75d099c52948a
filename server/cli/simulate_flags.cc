#include "server/cli/simulate_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/absl_view.h"
#include "runtime/base/status_macros.h"
#include "scheduler/simulate/text_parse.h"
#include "server/config/quantity.h"

namespace quire {
namespace {

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::StatusOr<LengthDistribution> Lengths(const char* flag, const std::string& text) {
  absl::StatusOr<LengthDistribution> lengths = LengthDistribution::Parse(text);
  if (lengths.ok()) return lengths;
  return Bad(flag, ": ", lengths.status().message());
}

bool IsTenant(std::string_view name) {
  return !name.empty() && name.size() <= 48 && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_' || c == '-';
  });
}

// "a=3,b=1:5": shares of the requests, and priorities.
absl::StatusOr<std::vector<TenantTraffic>> ParseTenants(const std::string& text) {
  std::vector<TenantTraffic> tenants;
  if (text.empty()) return tenants;
  std::vector<std::string_view> items, parts, numbers;
  SplitFields(text, ',', &items);
  for (const std::string_view item : items) {
    SplitFields(item, '=', &parts);
    TenantTraffic tenant{.name = std::string(parts[0])};
    bool good = parts.size() == 2 && IsTenant(parts[0]) && tenants.size() < 256;
    if (good) {
      SplitFields(parts[1], ':', &numbers);
      good = numbers.size() <= 2 && ParseNumber(numbers[0], &tenant.share) && tenant.share > 0 &&
             tenant.share <= 1e6;
      if (good && numbers.size() == 2) {
        good = ParseNumber(numbers[1], &tenant.priority) && tenant.priority >= -10 &&
               tenant.priority <= 10;
      }
    }
    if (!good) {
      return Bad("--tenants: got '", View(item),
                 "', wanted NAME=SHARE or NAME=SHARE:PRIORITY with NAME of 1..48 a-z 0-9 _ -, "
                 "SHARE above 0, PRIORITY -10..10");
    }
    if (std::ranges::find(tenants, tenant.name, &TenantTraffic::name) != tenants.end()) {
      return Bad("--tenants: '", tenant.name, "' is named twice");
    }
    tenants.push_back(tenant);
  }
  return tenants;
}

// "ttft=500ms,itl=80ms,e2e=10s".
absl::StatusOr<LatencyObjective> ParseSlo(const std::string& text) {
  LatencyObjective slo;
  if (text.empty()) return slo;
  const std::map<std::string_view, double*> names = {
      {"ttft", &slo.ttft_s}, {"itl", &slo.itl_s}, {"e2e", &slo.e2e_s}};
  std::vector<std::string_view> items, parts;
  SplitFields(text, ',', &items);
  for (const std::string_view item : items) {
    SplitFields(item, '=', &parts);
    const auto name = names.find(parts[0]);
    bool good = parts.size() == 2 && name != names.end();
    if (good) {
      std::string_view value = parts[1];
      const double unit = value.ends_with("ms") ? 1e-3 : 1;
      value.remove_suffix(value.ends_with("ms") ? 2 : value.ends_with("s") ? 1 : 0);
      good = value.size() < parts[1].size() && ParseNumber(value, name->second) &&
             *name->second > 0 && *name->second <= 1e6;
      *name->second *= unit;
    }
    if (!good) {
      return Bad("--slo: got '", View(item), "', wanted ttft=, itl= or e2e= with a time such as ",
                 "500ms or 2s");
    }
  }
  return slo;
}

}  // namespace

void SimulateFlags::AddTo(CLI::App& app) {
  AddTraffic(app);
  AddServers(app);
  AddAnswers(app);
}

void SimulateFlags::AddTraffic(CLI::App& app) {
  app.add_option("--cost", cost,
                 "cost of a step on the server's machine: the file that `quire "
                 "bench --fit-cost` writes")
      ->required();
  app.add_option("--trace", trace,
                 "CSV of arrivals: time_s,prompt_tokens,output_tokens[,tenant,"
                 "priority,prefix,prefix_tokens]");
  app.add_option("--rate", rate, "instead of a trace: Poisson arrivals, requests per second")
      ->check(CLI::Range(1e-6, 1e6));
  app.add_option("--duration", seconds, "of generated arrivals, seconds [300]")
      ->check(CLI::Range(0.001, 1e7));
  app.add_option("--seed", seed, "of generated arrivals [1]");
  app.add_option("--prompt-tokens", prompt_tokens,
                 "lengths: N, LOW..HIGH, exp:MEAN, lognormal:MEDIAN:SIGMA [lognormal:200:0.8]");
  app.add_option("--output-tokens", output_tokens, "likewise [lognormal:100:0.7]");
  app.add_option("--tenants", tenants, "NAME=SHARE[:PRIORITY],... of generated arrivals [one]");
  app.add_option("--prefixes", prefixes,
                 "shared prefixes of each tenant, such as system prompts [0]")
      ->check(CLI::Range(0, 100'000));
  app.add_option("--prefix-tokens", prefix_tokens, "of each, before the prompt's own [256]")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--prefix-share", prefix_share, "part of the requests with a shared prefix [1]")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--save-trace", save_trace, "write the arrivals as CSV");
}

void SimulateFlags::AddServers(CLI::App& app) {
  app.add_option("--replicas", replicas, "servers [1]")->check(CLI::Range(1, 4096));
  app.add_option("--routing", routing, "round-robin, least-loaded or prefix [least-loaded]")
      ->check(CLI::IsMember({"round-robin", "least-loaded", "prefix"}));
  app.add_option("--kv-cache-bytes", kv_cache_bytes,
                 "KV cache of each server: bytes, or with KiB, MiB, GiB [2GiB]");
  app.add_option("--max-context", max_context, "context in tokens [the model's]")
      ->check(CLI::Range(0, 1 << 24));
  app.add_option("--step-tokens", scheduler.step_tokens, "token budget of a step [128]")
      ->check(CLI::Range(1, 8192));
  app.add_option("--max-running", scheduler.max_running, "sequences in the batch [64]")
      ->check(CLI::Range(1, 4096));
  app.add_option("--max-waiting", scheduler.max_waiting, "sequences in the queue [256]")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-waiting-tokens", scheduler.max_waiting_tokens,
                 "prompt tokens in the queue [262144]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--max-queue-ms", max_queue_ms, "longest wait in the queue [120000]")
      ->check(CLI::Range(1, 86'400'000));

  app.add_option("--scheduling", scheduling,
                 "fair: priorities and tenants' shares; fcfs: arrival order alone [fair]")
      ->check(CLI::IsMember({"fair", "fcfs"}));
  app.add_option("--ageing-ms", ageing_ms,
                 "a waiting request rises one priority level each time; 0 = never [5000]")
      ->check(CLI::Range(0, 86'400'000));
  app.add_option("--tenant-weights", tenant_weights, "NAME=WEIGHT,... of fair shares [all 1]");
  app.add_option("--target-itl-ms", target_itl_ms,
                 "prompt chunks shrink so that steps with decodes take no longer [0 = off]")
      ->check(CLI::Range(0, 60'000));
  app.add_option("--prefix-cache", prefix_cache, "on or off [on]")
      ->check(CLI::IsMember({"on", "off"}));
}

void SimulateFlags::AddAnswers(CLI::App& app) {
  app.add_option("--slo", slo,
                 "objective of a request: ttft=500ms,itl=80ms,e2e=10s (any of them; "
                 "itl: mean of the request)");
  app.add_option("--slo-target", slo_target, "part of the requests that must meet it [0.99]")
      ->check(CLI::Range(0.0, 1.0));
  auto* find =
      app.add_flag("--find-rate", find_rate, "the largest arrival rate at which --slo is met");
  app.add_flag("--find-replicas", find_replicas, "the fewest replicas with which --slo is met")
      ->excludes(find);
  app.add_option("--max-replicas", max_replicas, "of --find-replicas [256]")
      ->check(CLI::Range(1, 4096));
  app.add_option("--plot", plot, "write a picture (SVG) of the result");
  app.add_flag("--json", json, "print one JSON object instead of tables");
}

absl::Status SimulateFlags::CheckTogether() const {
  if (trace.empty() == (rate == 0)) return Bad("give either --trace FILE or --rate R");
  if ((find_rate || find_replicas) && slo.empty()) {
    return Bad(find_rate ? "--find-rate" : "--find-replicas", " needs --slo");
  }
  return absl::OkStatus();
}

absl::StatusOr<ArrivalOptions> SimulateFlags::Arrivals(const SimulationOptions& options) const {
  ArrivalOptions arrivals;
  arrivals.rate = rate;
  arrivals.seconds = seconds;
  arrivals.seed = seed;
  ASSIGN_OR_RETURN(arrivals.prompt_tokens, Lengths("--prompt-tokens", prompt_tokens));
  ASSIGN_OR_RETURN(arrivals.output_tokens, Lengths("--output-tokens", output_tokens));
  ASSIGN_OR_RETURN(arrivals.tenants, ParseTenants(tenants));
  arrivals.max_total_tokens = options.replica.scheduler.context_tokens;
  arrivals.prefixes = prefixes;
  arrivals.prefix_tokens = prefix_tokens;
  arrivals.prefix_share = prefix_share;
  return arrivals;
}

absl::StatusOr<SimulationOptions> SimulateFlags::Options(const CostFile& cost_file) const {
  SimulationOptions options;
  options.replicas = replicas;
  options.routing = routing == "round-robin" ? Routing::kRoundRobin
                    : routing == "prefix"    ? Routing::kPrefixAffinity
                                             : Routing::kLeastLoaded;
  ASSIGN_OR_RETURN(options.objective, ParseSlo(slo));
  options.replica.scheduler = scheduler;
  SchedulerOptions& s = options.replica.scheduler;
  s.context_tokens = cost_file.context_tokens;
  if (max_context > 0) s.context_tokens = std::min(s.context_tokens, max_context);
  s.queue.fcfs = scheduling == "fcfs";
  s.queue.ageing_ns = ageing_ms * 1'000'000;
  s.target_itl_ns = target_itl_ms * 1'000'000;
  s.prefix_cache = prefix_cache == "on";
  s.max_queue_ns = max_queue_ms * 1'000'000;
  const std::optional<int64_t> bytes = ParseBytes(kv_cache_bytes);
  const int64_t blocks = bytes.value_or(0) / cost_file.kv_block_bytes;
  if (blocks < 1 || blocks > (1 << 24)) {
    return Bad("--kv-cache-bytes: got '", kv_cache_bytes,
               "', wanted bytes, or with KiB, MiB, GiB, ", "of 1..", 1 << 24, " blocks of ",
               cost_file.kv_block_bytes, " bytes each");
  }
  options.replica.num_blocks = static_cast<int32_t>(blocks);
  if (s.context_tokens < 2) return Bad("--max-context: wanted 2 or more");
  return options;
}

absl::StatusOr<std::vector<double>> SimulateFlags::TenantWeights(
    const std::vector<std::string>& names) const {
  std::vector<double> weights(names.size(), 1.0);
  std::vector<std::string_view> items, parts;
  if (tenant_weights.empty()) return weights;
  SplitFields(tenant_weights, ',', &items);
  for (const std::string_view item : items) {
    SplitFields(item, '=', &parts);
    double weight = 0;
    if (parts.size() != 2 || !ParseNumber(parts[1], &weight) || !(weight > 0 && weight <= 1e6)) {
      return Bad("--tenant-weights: got '", View(item),
                 "', wanted NAME=WEIGHT with WEIGHT above 0");
    }
    const auto name = std::ranges::find(names, parts[0]);
    if (name == names.end()) {
      return Bad("--tenant-weights: no request is of tenant '", View(parts[0]), "'");
    }
    weights[static_cast<size_t>(name - names.begin())] = weight;
  }
  return weights;
}

}  // namespace quire
