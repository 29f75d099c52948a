#include "runtime/text/json_field.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"
#include "runtime/text/utf8.h"

namespace quire {
namespace {

// Depth of brackets outside strings: what the parser would build. Right for every text that is JSON.
int NestingDepth(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

absl::StatusOr<OrderedJson> Parse(std::string_view field, std::string_view text) {
  if (!IsValidUtf8(text)) return InvalidField(field, "not valid UTF-8");
  if (const int depth = NestingDepth(text); depth > kMaxJsonDepth) {
    return InvalidField(field, absl::StrCat("JSON nested ", depth, " deep, at most ", kMaxJsonDepth));
  }
  OrderedJson json = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return InvalidField(field, "not valid JSON");
  return json;
}

}  // namespace

absl::StatusOr<OrderedJson> ParseJsonObject(std::string_view field, std::string_view text) {
  if (text.empty()) return OrderedJson::object();
  auto json = Parse(field, text);
  if (json.ok() && !json->is_object()) return InvalidField(field, "JSON, but not an object");
  return json;
}

absl::StatusOr<OrderedJson> ParseJsonArray(std::string_view field, std::string_view text) {
  if (text.empty()) return OrderedJson::array();
  auto json = Parse(field, text);
  if (json.ok() && !json->is_array()) return InvalidField(field, "JSON, but not an array");
  return json;
}

std::string DumpJson(const OrderedJson& json) {
  // Never throws: what is not UTF-8 would be replaced.
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace quire
