#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/read_file.h"
#include "runtime/base/status_macros.h"
#include "server/config/server_config.h"
#include "server/config/settings.h"

// The sources are applied in rising order onto one struct, every one of them checked, so a bad
// variable is an error even under a good flag. Errors of flags are usage (64), all others
// configuration (78).
extern "C" char** environ;

namespace quire {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

struct Given {
  const Setting* setting;
  std::vector<std::string> values;
  std::string origin;  // "--threads", "QUIRE_THREADS", "file.json: threads"
};

absl::Status BadConfig(const std::string& message) {
  return absl::FailedPreconditionError(message);
}

absl::Status Apply(const Given& given, absl::StatusCode code, ServerConfig& config) {
  if (given.setting->set(config, given.values)) return absl::OkStatus();
  std::string got;
  for (const std::string& value : given.values)
    absl::StrAppend(&got, got.empty() ? "" : ",", value);
  return absl::Status(code, absl::StrCat(given.origin, ": got '", got.substr(0, 200), "', wanted ",
                                         given.setting->wanted));
}

absl::StatusOr<std::vector<std::string>> JsonValues(const nlohmann::json& value,
                                                    const std::string& origin) {
  const auto scalar = [](const nlohmann::json& v) {
    return v.is_string() ? v.get<std::string>() : v.dump();
  };
  const auto is_scalar = [](const nlohmann::json& v) {
    return v.is_string() || v.is_number() || v.is_boolean();
  };
  if (value.is_string() && value.get_ref<const std::string&>().find('\0') != std::string::npos) {
    return BadConfig(absl::StrCat(origin, ": holds a zero byte"));
  }
  if (is_scalar(value)) return std::vector<std::string>{scalar(value)};
  if (value.is_array() && std::ranges::all_of(value, is_scalar)) {
    std::vector<std::string> values;
    for (const nlohmann::json& element : value) values.push_back(scalar(element));
    return values;
  }
  return BadConfig(
      absl::StrCat(origin, ": got ", value.type_name(), ", wanted a value or a list of values"));
}

absl::StatusOr<nlohmann::json> ParseFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadRegularFile(path, kMaxFileBytes);
  if (!text.ok()) return BadConfig(absl::StrCat("--config: ", text.status().message()));
  std::set<std::string> keys;
  std::string repeated;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1 &&
        !keys.insert(parsed.get<std::string>()).second) {
      repeated = parsed.get<std::string>();
    }
    return depth <= 4;  // deeper values are dropped; what is left is refused below
  };
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(*text, watch);
  } catch (const nlohmann::json::exception& error) {
    return BadConfig(absl::StrCat(path, ": not JSON: ", error.what()));
  }
  if (!json.is_object())
    return BadConfig(absl::StrCat(path, ": got ", json.type_name(), ", wanted an object"));
  if (!repeated.empty())
    return BadConfig(absl::StrCat(path, ": key ", repeated, " is given twice"));
  return json;
}

absl::StatusOr<std::vector<Given>> ReadFile(const std::string& path) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ParseFile(path));
  std::vector<Given> all;
  for (const auto& [key, value] : json.items()) {
    std::string name = key;
    std::ranges::replace(name, '_', '-');
    const Setting* setting = FindSetting(name);
    if (setting == nullptr) return BadConfig(absl::StrCat(path, ": unknown key ", key));
    const std::string origin = absl::StrCat(path, ": ", key);
    ASSIGN_OR_RETURN(std::vector<std::string> values, JsonValues(value, origin));
    if (values.size() != 1 && setting->form != SettingForm::kList) {
      return BadConfig(
          absl::StrCat(origin, ": got ", values.size(), " values, wanted ", setting->wanted));
    }
    all.push_back({.setting = setting, .values = std::move(values), .origin = origin});
  }
  return all;
}

// Kubernetes injects QUIRE_SERVICE_* and QUIRE_PORT* for a Service named quire; tests have
// variables of theirs.
bool IsForeign(std::string_view variable) {
  return variable.starts_with("QUIRE_SERVICE_") || variable.starts_with("QUIRE_PORT") ||
         variable.starts_with("QUIRE_TEST_");
}

absl::StatusOr<std::vector<Given>> ReadEnvironment(const Environment& environment) {
  std::vector<Given> all;
  for (const auto& [variable, value] : environment) {
    if (!variable.starts_with("QUIRE_") || IsForeign(variable) || variable == "QUIRE_CONFIG" ||
        value.empty())
      continue;
    const auto settings = AllSettings();
    const auto it = std::ranges::find_if(
        settings, [&](const Setting& s) { return VariableOf(s.name) == variable; });
    if (it == settings.end()) return BadConfig(absl::StrCat("unknown variable ", variable));
    std::vector<std::string> values = {value};
    if (it->form == SettingForm::kList) values = absl::StrSplit(value, ',');
    all.push_back({.setting = &*it, .values = std::move(values), .origin = variable});
  }
  return all;
}

absl::Status CheckPolicy(const ServerConfig& config) {
  if (config.model.empty()) return BadConfig("no model: give --model FILE (or QUIRE_MODEL)");
  if (config.trusted_network) return absl::OkStatus();
  for (const std::string& address : config.listen) {
    if (IsPrivateListener(address)) continue;
    return BadConfig(absl::StrCat(
        "--listen ", address,
        " can be reached from other hosts. This build speaks plain-text gRPC, which is fit for "
        "trusted peers only: add --trusted-network (QUIRE_TRUSTED_NETWORK=true) if nothing else "
        "can reach it, or "
        "listen on 127.0.0.1 or unix:PATH behind a proxy"));
  }
  return absl::OkStatus();
}

}  // namespace

struct ConfigFlags::State {
  struct Flag {
    const Setting* setting;
    CLI::Option* option = nullptr;
    std::string text;
    std::vector<std::string> list;
  };
  std::vector<Flag> flags;
  std::string config_path;
  bool print = false;

  // All sources in rising order, with the code of each one's errors.
  absl::StatusOr<std::vector<std::pair<Given, absl::StatusCode>>> Collect(
      const Environment& environment) const;
};

ConfigFlags::ConfigFlags() : state_(std::make_unique<State>()) {
  for (const Setting& setting : AllSettings())
    state_->flags.push_back({.setting = &setting, .text = {}, .list = {}});
}

ConfigFlags::~ConfigFlags() = default;

void ConfigFlags::AddTo(CLI::App& app) {
  const ServerConfig defaults;
  for (State::Flag& flag : state_->flags) {
    const Setting& setting = *flag.setting;
    const std::string name = absl::StrCat("--", setting.name);
    const std::string shown = setting.show(defaults);
    const std::string help = absl::StrCat(setting.help, " [", shown.empty() ? "unset" : shown, "; ",
                                          setting.wanted, "; ", VariableOf(setting.name), "]");
    switch (setting.form) {
      case SettingForm::kValue:
        flag.option = app.add_option(name, flag.text, help);
        break;
      case SettingForm::kList:
        flag.option = app.add_option(name, flag.list, help)->allow_extra_args(false);
        break;
      case SettingForm::kSwitch:
        flag.option = app.add_flag(name, flag.text, help);
        break;
    }
    flag.option->type_name("");
  }
  app.add_option("--config", state_->config_path,
                 "JSON file of settings [unset; a file; QUIRE_CONFIG]")
      ->type_name("");
  app.add_flag("--print-config", state_->print,
               "print every setting and where it comes from, then exit");
}

bool ConfigFlags::print_config() const { return state_->print; }

absl::StatusOr<std::vector<std::pair<Given, absl::StatusCode>>> ConfigFlags::State::Collect(
    const Environment& environment) const {
  std::vector<std::pair<Given, absl::StatusCode>> all;
  std::string path = config_path;
  if (const auto it = environment.find("QUIRE_CONFIG"); path.empty() && it != environment.end())
    path = it->second;
  if (!path.empty()) {
    ASSIGN_OR_RETURN(std::vector<Given> given, ReadFile(path));
    for (Given& g : given) all.emplace_back(std::move(g), absl::StatusCode::kFailedPrecondition);
  }
  ASSIGN_OR_RETURN(std::vector<Given> given, ReadEnvironment(environment));
  for (Given& g : given) all.emplace_back(std::move(g), absl::StatusCode::kFailedPrecondition);
  for (const Flag& flag : flags) {
    if (flag.option == nullptr || flag.option->count() == 0) continue;
    Given g{.setting = flag.setting,
            .values = {flag.text},
            .origin = absl::StrCat("--", flag.setting->name)};
    if (flag.setting->form == SettingForm::kList) g.values = flag.list;
    all.emplace_back(std::move(g), absl::StatusCode::kInvalidArgument);
  }
  return all;
}

absl::StatusOr<ServerConfig> ConfigFlags::Resolve(const Environment& environment) const {
  ASSIGN_OR_RETURN(const auto all, state_->Collect(environment));
  ServerConfig config;
  for (const auto& [given, code] : all) RETURN_IF_ERROR(Apply(given, code, config));
  RETURN_IF_ERROR(CheckPolicy(config));
  return config;
}

absl::StatusOr<std::string> ConfigFlags::Print(const Environment& environment) const {
  ASSIGN_OR_RETURN(const auto all, state_->Collect(environment));
  ServerConfig config;
  std::map<std::string, std::string> origins;
  for (const auto& [given, code] : all) {
    RETURN_IF_ERROR(Apply(given, code, config));
    origins[given.setting->name] = given.origin;
  }
  std::string out;
  for (const Setting& setting : AllSettings()) {
    const auto it = origins.find(setting.name);
    absl::StrAppend(&out, setting.name, " = ", setting.show(config), "  (",
                    it == origins.end() ? "default" : it->second, ")\n");
  }
  return out;
}

Environment ProcessEnvironment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (!text.starts_with("QUIRE_") || equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

absl::StatusOr<ServerConfig> ParseServerConfig(const std::vector<std::string>& arguments,
                                               const Environment& environment) {
  ConfigFlags flags;
  CLI::App app;
  flags.AddTo(app);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(),
                                       arguments.rend()));  // CLI11 wants them reversed
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return flags.Resolve(environment);
}

}  // namespace quire
