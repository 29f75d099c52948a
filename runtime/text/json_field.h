// JSON that a client sends inside a request field: parsed within a depth bound, kept in its order. Pure functions;
// any thread.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace quire {

using OrderedJson = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 64;

// INVALID_ARGUMENT FIELD_INVALID naming `field` if `text` is no JSON of the wanted kind, or nests deeper than
// kMaxJsonDepth. An empty text is an empty object or array.
absl::StatusOr<OrderedJson> ParseJsonObject(std::string_view field, std::string_view text);
absl::StatusOr<OrderedJson> ParseJsonArray(std::string_view field, std::string_view text);

// As compact text; the strings hold valid UTF-8.
std::string DumpJson(const OrderedJson& json);

}  // namespace quire
