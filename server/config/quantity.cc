#include "server/config/quantity.h"

#include <array>
#include <charconv>
#include <span>
#include <system_error>
#include <utility>

namespace quire {
namespace {

using Unit = std::pair<std::string_view, int64_t>;

constexpr std::array<Unit, 3> kByteUnits = {
    {{"KiB", int64_t{1} << 10}, {"MiB", int64_t{1} << 20}, {"GiB", int64_t{1} << 30}}};
constexpr std::array<Unit, 3> kTimeUnits = {{{"ms", 1}, {"s", 1000}, {"m", 60'000}}};

// `bare` is the factor without a unit.
std::optional<int64_t> ParseWithUnit(std::string_view text, std::span<const Unit> units,
                                     int64_t bare) {
  int64_t factor = bare;
  for (const auto& [unit, size] : units) {
    if (text.size() > unit.size() && text.ends_with(unit)) {
      factor = size;
      text.remove_suffix(unit.size());
      break;
    }
  }
  const std::optional<int64_t> value = ParseInteger(text);
  int64_t product = 0;
  if (!value.has_value() || __builtin_mul_overflow(*value, factor, &product)) return std::nullopt;
  return product;
}

}  // namespace

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> ParseBytes(std::string_view text) {
  return ParseWithUnit(text, kByteUnits, 1);
}

std::optional<int64_t> ParseMillis(std::string_view text) {
  return ParseWithUnit(text, kTimeUnits, 1000);
}

}  // namespace quire
