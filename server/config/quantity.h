// Integers with a unit behind them, as flags, variables and files write them. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace quire {

// All of the text, or nothing.
std::optional<int64_t> ParseInteger(std::string_view text);
// "5" or "5KiB", "5MiB", "5GiB".
std::optional<int64_t> ParseBytes(std::string_view text);
// "5" (seconds) or "5ms", "5s", "5m".
std::optional<int64_t> ParseMillis(std::string_view text);

}  // namespace quire
