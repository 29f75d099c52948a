#include "runtime/base/error_info.h"

#include <charconv>
#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/absl_view.h"

// The payload is a flat list of length-prefixed strings: reason, delay, then key/value pairs after
// a count each. Both ends live in this file, so the format needs no version.
namespace quire {
namespace {

constexpr std::string_view kPayloadUrl = "type.quire/error_info";

void Put(std::string& out, std::string_view s) { absl::StrAppend(&out, s.size(), ":", View(s)); }

std::string_view Take(std::string_view& in) {
  const size_t colon = in.find(':');
  if (colon == std::string_view::npos) return {};
  size_t n = 0;
  std::from_chars(in.data(), in.data() + colon, n);
  std::string_view value = in.substr(colon + 1, n);
  in.remove_prefix(colon + 1 + value.size());
  return value;
}

int64_t TakeInt(std::string_view& in) {
  const std::string_view s = Take(in);
  int64_t v = 0;
  std::from_chars(s.data(), s.data() + s.size(), v);
  return v;
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, std::string_view message, const ErrorInfo& info) {
  absl::Status status(code, View(message));
  std::string out;
  Put(out, info.reason);
  Put(out, absl::StrCat(info.retry_delay_ms));
  Put(out, absl::StrCat(info.metadata.size()));
  for (const auto& [key, value] : info.metadata) {
    Put(out, key);
    Put(out, value);
  }
  Put(out, absl::StrCat(info.violations.size()));
  for (const FieldViolation& v : info.violations) {
    Put(out, v.field);
    Put(out, v.description);
  }
  status.SetPayload(View(kPayloadUrl), absl::Cord(out));
  return status;
}

ErrorInfo GetErrorInfo(const absl::Status& status) {
  ErrorInfo info;
  const auto payload = status.GetPayload(View(kPayloadUrl));
  if (!payload.has_value()) return info;
  const std::string flat(*payload);
  std::string_view in = flat;
  info.reason = Take(in);
  info.retry_delay_ms = TakeInt(in);
  for (int64_t n = TakeInt(in); n > 0; --n) {
    std::string key(Take(in));
    info.metadata.emplace_back(std::move(key), std::string(Take(in)));
  }
  for (int64_t n = TakeInt(in); n > 0; --n) {
    std::string field(Take(in));
    info.violations.push_back({std::move(field), std::string(Take(in))});
  }
  return info;
}

absl::Status InvalidField(std::string_view field, std::string_view description) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(View(field), ": ", View(description)),
                   {.reason = "FIELD_INVALID",
                    .metadata = {},
                    .violations = {{std::string(field), std::string(description)}}});
}

}  // namespace quire
