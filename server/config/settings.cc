#include "server/config/settings.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/absl_view.h"
#include "server/config/latency_buckets.h"
#include "server/config/quantity.h"

namespace quire {
namespace {

using Values = std::vector<std::string>;

template <typename T>
Setting Integer(std::string name, T ServerConfig::* field, int64_t low, int64_t high,
                std::string help) {
  Setting s{.name = std::move(name),
            .wanted = absl::StrCat("integer ", low, "..", high),
            .help = std::move(help)};
  s.set = [field, low, high](ServerConfig& config, const Values& values) {
    const std::optional<int64_t> value = ParseInteger(values[0]);
    if (!(value.has_value() && *value >= low && *value <= high)) return false;
    config.*field = static_cast<T>(*value);
    return true;
  };
  s.show = [field](const ServerConfig& config) { return absl::StrCat(config.*field); };
  return s;
}

template <typename T>
Setting Bytes(std::string name, T ServerConfig::* field, int64_t low, int64_t high,
              std::string help) {
  Setting s = Integer(std::move(name), field, low, high, std::move(help));
  s.wanted = absl::StrCat("bytes ", low, "..", high, ", or with KiB, MiB, GiB");
  s.set = [field, low, high](ServerConfig& config, const Values& values) {
    const std::optional<int64_t> value = ParseBytes(values[0]);
    if (!(value.has_value() && *value >= low && *value <= high)) return false;
    config.*field = static_cast<T>(*value);
    return true;
  };
  return s;
}

Setting Seconds(std::string name, absl::Duration ServerConfig::* field, int64_t high_s,
                std::string help) {
  Setting s{.name = std::move(name),
            .wanted = absl::StrCat("seconds 0..", high_s, ", or with ms, s, m"),
            .help = std::move(help)};
  s.set = [field, high_s](ServerConfig& config, const Values& values) {
    const std::optional<int64_t> ms = ParseMillis(values[0]);
    if (!(ms.has_value() && *ms >= 0 && *ms <= high_s * 1000)) return false;
    config.*field = absl::Milliseconds(*ms);
    return true;
  };
  s.show = [field](const ServerConfig& config) { return absl::FormatDuration(config.*field); };
  return s;
}

Setting Text(std::string name, std::string ServerConfig::* field, std::string wanted,
             std::string help) {
  Setting s{.name = std::move(name), .wanted = std::move(wanted), .help = std::move(help)};
  s.set = [field](ServerConfig& config, const Values& values) {
    config.*field = values[0];
    return !values[0].empty() && values[0].size() <= 4096;
  };
  s.show = [field](const ServerConfig& config) { return config.*field; };
  return s;
}

Setting Switch(std::string name, bool ServerConfig::* field, std::string help) {
  Setting s{.name = std::move(name),
            .wanted = "true or false",
            .help = std::move(help),
            .form = SettingForm::kSwitch};
  s.set = [field](ServerConfig& config, const Values& values) {
    const std::string& text = values[0];
    if (text != "true" && text != "false" && text != "1" && text != "0") return false;
    config.*field = text == "true" || text == "1";
    return true;
  };
  s.show = [field](const ServerConfig& config) {
    return std::string(config.*field ? "true" : "false");
  };
  return s;
}

template <typename T>
Setting Choice(std::string name, T ServerConfig::* field,
               std::vector<std::pair<std::string, T>> choices, std::string help) {
  Setting s{
      .name = std::move(name),
      .wanted = absl::StrJoin(
          choices, "|", [](std::string* out, const auto& c) { absl::StrAppend(out, c.first); }),
      .help = std::move(help)};
  s.set = [field, choices](ServerConfig& config, const Values& values) {
    const auto it = std::ranges::find(choices, values[0], &std::pair<std::string, T>::first);
    if (it == choices.end()) return false;
    config.*field = it->second;
    return true;
  };
  s.show = [field, choices](const ServerConfig& config) {
    return std::ranges::find(choices, config.*field, &std::pair<std::string, T>::second)->first;
  };
  return s;
}

bool IsListenAddress(std::string_view address) {
  if (address.starts_with("unix:")) return address.size() > 5 && address.size() <= 5 + 107;
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::optional<int64_t> port = ParseInteger(address.substr(colon + 1));
  return port.has_value() && *port >= 0 && *port <= 65535;
}

Setting Listen() {
  Setting s{.name = "listen",
            .wanted = "host:port, [v6]:port or unix:PATH",
            .help = "where gRPC listens; repeatable (variable: separated by commas)",
            .form = SettingForm::kList};
  s.set = [](ServerConfig& config, const Values& values) {
    if (values.empty() || values.size() > 16 || !std::ranges::all_of(values, IsListenAddress))
      return false;
    config.listen = values;
    return true;
  };
  s.show = [](const ServerConfig& config) { return absl::StrJoin(config.listen, ","); };
  return s;
}

// A list of name=weight; names are tenants (a-z 0-9 _ -, at most 64 characters), each once.
bool ParseTenantWeights(const Values& values, std::vector<TenantWeight>* out) {
  constexpr size_t kMostTenants = 254;
  const auto is_name = [](std::string_view name) {
    return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
  };
  std::vector<TenantWeight> weights;
  for (const std::string& value : values) {
    for (const std::string& part : std::vector<std::string>(absl::StrSplit(value, ','))) {
      const size_t equals = part.find('=');
      if (equals == std::string::npos || !is_name(std::string_view(part).substr(0, equals)))
        return false;
      TenantWeight weight{.name = part.substr(0, equals)};
      if (!absl::SimpleAtod(part.substr(equals + 1), &weight.weight)) return false;
      if (!(weight.weight >= 0.01 && weight.weight <= 100)) return false;
      if (std::ranges::find(weights, weight.name, &TenantWeight::name) != weights.end()) {
        return false;
      }
      weights.push_back(std::move(weight));
    }
  }
  *out = std::move(weights);
  return out->size() <= kMostTenants;
}

Setting TenantWeights() {
  Setting s{.name = "tenant-weights",
            .wanted = "name=weight,... with weights 0.01..100, each name once",
            .help = "shares of service of tenants (metadata x-quire-tenant); others have 1",
            .form = SettingForm::kList};
  s.set = [](ServerConfig& config, const Values& values) {
    return ParseTenantWeights(values, &config.tenant_weights);
  };
  s.show = [](const ServerConfig& config) {
    return absl::StrJoin(config.tenant_weights, ",", [](std::string* out, const TenantWeight& t) {
      absl::StrAppend(out, t.name, "=", t.weight);
    });
  };
  return s;
}

Setting MetricsBuckets() {
  std::string names;
  for (const std::string_view name : kLatencyFamilies)
    absl::StrAppend(&names, names.empty() ? "" : ", ", View(name));
  Setting s{
      .name = "metrics-buckets",
      .wanted = absl::StrCat(
          "NAME=BOUND,BOUND,... with 1..64 ascending seconds above 0, each NAME once, of ", names),
      .help = "buckets of latency histograms in /metrics; repeatable; unset: their own",
      .form = SettingForm::kList};
  s.set = [](ServerConfig& config, const Values& values) {
    return ParseLatencyBuckets(values, &config.metrics_buckets);
  };
  s.show = [](const ServerConfig& config) { return LatencyBucketsText(config.metrics_buckets); };
  return s;
}

Setting HttpListen() {
  Setting s = Text("http-listen", &ServerConfig::http_listen, "host:port, [v6]:port or off",
                   "where /metrics, /livez and /readyz listen");
  s.set = [](ServerConfig& config, const Values& values) {
    config.http_listen = values[0];
    return values[0] == "off" || (IsListenAddress(values[0]) && !values[0].starts_with("unix:"));
  };
  return s;
}

std::vector<Setting> MakeSettings() {
  using C = ServerConfig;
  return {
      Text("model", &C::model, "a file", "model to serve (GGUF)"),
      Text("model-name", &C::model_name, "text", "name that clients use; unset: the file's"),
      Text("chat-template", &C::chat_template, "a file", "replaces the model's chat template"),
      Listen(),
      HttpListen(),
      Switch("trusted-network", &C::trusted_network,
             "allow gRPC listeners that other hosts can reach, in plain text"),
      Choice<ReflectionMode>("reflection", &C::reflection,
                             {{"auto", ReflectionMode::kAuto},
                              {"on", ReflectionMode::kOn},
                              {"off", ReflectionMode::kOff}},
                             "gRPC reflection; auto: if all listeners are private"),
      Choice<bool>("unknown-fields", &C::ignore_unknown_fields,
                   {{"refuse", false}, {"ignore", true}},
                   "what happens to request fields that this build does not know"),
      Bytes("kv-cache-bytes", &C::kv_cache_bytes, 0, int64_t{1} << 46,
            "size of the KV cache; 0: what the memory limit leaves, at most 2 GiB"),
      Choice<KvDtype>("kv-dtype", &C::kv_dtype,
                      {{"auto", KvDtype::kAuto},
                       {"f32", KvDtype::kF32},
                       {"bf16", KvDtype::kBf16},
                       {"int8", KvDtype::kInt8},
                       {"int16", KvDtype::kInt16}},
                      "type of the KV cache; auto: int8, which holds twice the tokens of bf16"),
      Integer("threads", &C::threads, 0, 1024, "kernel threads; 0: from CPU quota and affinity"),
      Text("isa", &C::isa, "an instruction set name",
           "highest instruction set to use; unset: the best of this CPU"),
      Integer("step-tokens", &C::step_tokens, 1, 8192, "token budget of an engine step"),
      Choice<bool>("prefix-cache", &C::prefix_cache, {{"on", true}, {"off", false}},
                   "reuse of KV blocks by requests that begin alike"),
      Choice<bool>("scheduling", &C::fcfs, {{"fair", false}, {"fcfs", true}},
                   "fair: priorities, then tenants' shares, then arrival; fcfs: arrival alone"),
      Integer("ageing-ms", &C::ageing_ms, 1, 86'400'000,
              "time in which a waiting request rises by one priority level"),
      TenantWeights(),
      Integer("target-itl-ms", &C::target_itl_ms, 0, 60'000,
              "time between tokens that prompts of others may cost; 0: a fixed step budget"),
      Switch("deadline-admission", &C::deadline_admission,
             "refuse requests that cannot make their deadline at the measured rate"),
  };
}

std::vector<Setting> MakeLimits() {
  using C = ServerConfig;
  constexpr int64_t kGiB = int64_t{1} << 30;
  return {
      Bytes("max-prompt-bytes", &C::max_prompt_bytes, 1, kGiB, "longest prompt"),
      Integer("max-context", &C::max_context, 0, 1 << 24, "context in tokens; 0: the model's"),
      Integer("max-outputs", &C::max_outputs, 1, 64, "most outputs of a request"),
      Integer("max-top-logprobs", &C::max_top_logprobs, 0, 20, "most alternatives per token"),
      Integer("default-max-tokens", &C::default_max_tokens, 1, 1 << 24,
              "output bound of a request that gives none"),
      Integer("max-request-ms", &C::max_request_ms, 1, 86'400'000, "longest run of a request"),
      Integer("max-running", &C::max_running, 1, 4096, "sequences in the batch"),
      Integer("max-waiting", &C::max_waiting, 1, 1 << 20,
              "sequences let in beyond max-running: these wait"),
      Integer("max-waiting-tokens", &C::max_waiting_tokens, 1, int64_t{1} << 40,
              "prompt tokens in the queue"),
      Integer("max-queue-ms", &C::max_queue_ms, 1, 86'400'000, "longest wait in the queue"),
      Integer("max-calls", &C::max_calls, 0, 1 << 20,
              "calls at once; 0: max-running + max-waiting + 64"),
      Bytes("stream-buffer-bytes", &C::stream_buffer_bytes, 1024, kGiB,
            "unread output at which a request is paused"),
      Integer("slow-reader-ms", &C::slow_reader_ms, 1, 86'400'000,
              "paused without progress for this long: ended"),
      Bytes("receive-message-bytes", &C::receive_message_bytes, 1024, kGiB,
            "largest request message"),
      Bytes("metadata-bytes", &C::metadata_bytes, 1024, 1 << 20, "largest request metadata"),
      Choice<bool>("request-log", &C::request_log, {{"on", true}, {"off", false}},
                   "a line per request on standard error, JSON unless it is a terminal; no text"),
      MetricsBuckets(),
      Seconds("drain-delay", &C::drain_delay, 3600,
              "between NOT_SERVING and refusing calls, at shutdown"),
      Seconds("drain-timeout", &C::drain_timeout, 86'400,
              "for running requests to finish, at shutdown"),
  };
}

}  // namespace

std::span<const Setting> AllSettings() {
  static const std::vector<Setting>* const settings = [] {
    auto* all = new std::vector<Setting>(MakeSettings());
    for (Setting& setting : MakeLimits()) all->push_back(std::move(setting));
    return all;
  }();
  return *settings;
}

const Setting* FindSetting(std::string_view name) {
  const auto all = AllSettings();
  const auto it = std::ranges::find(all, name, &Setting::name);
  return it == all.end() ? nullptr : &*it;
}

std::string VariableOf(std::string_view name) {
  std::string variable = "QUIRE_";
  for (const char c : name)
    variable += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return variable;
}

}  // namespace quire
