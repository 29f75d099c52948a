// The table of settings: one entry per flag, variable and configuration key, with its parser, range
// and help. Internal to this room. Immutable; any thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/config/server_config.h"

namespace quire {

enum class SettingForm : uint8_t { kValue, kList, kSwitch };

struct Setting {
  std::string
      name;  // "max-running": flag --max-running, variable QUIRE_MAX_RUNNING, key max_running
  std::string wanted;  // the accepted values, for help and errors: "integer 1..4096"
  std::string help;
  SettingForm form = SettingForm::kValue;
  // Sets the field; false if the text is not what is wanted. kList gets all its values in one call.
  std::function<bool(ServerConfig&, const std::vector<std::string>&)> set{};
  std::function<std::string(const ServerConfig&)> show{};
};

std::span<const Setting> AllSettings();
const Setting* FindSetting(std::string_view name);
// "max-running" -> "QUIRE_MAX_RUNNING".
std::string VariableOf(std::string_view name);

}  // namespace quire
