#include <algorithm>
#include <string_view>

#include "server/config/server_config.h"

namespace quire {

bool IsPrivateListener(std::string_view address) {
  if (address.starts_with("unix:")) return true;
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = address.substr(0, colon);
  if (host == "localhost" || host == "[::1]" || host == "::1") return true;
  // 127.0.0.0/8 in dotted form; a name such as "127.evil.example" is not.
  return host.starts_with("127.") &&
         std::ranges::all_of(host, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

bool ServerConfig::reflection_on() const {
  if (reflection != ReflectionMode::kAuto) return reflection == ReflectionMode::kOn;
  return std::ranges::all_of(listen, IsPrivateListener);
}

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
      return 64;
    case absl::StatusCode::kUnavailable:
      return 69;
    case absl::StatusCode::kResourceExhausted:
      return 75;
    case absl::StatusCode::kFailedPrecondition:
      return 78;
    case absl::StatusCode::kDeadlineExceeded:
      return 124;
    case absl::StatusCode::kCancelled:
      return 130;
    default:
      return 70;
  }
}

}  // namespace quire
