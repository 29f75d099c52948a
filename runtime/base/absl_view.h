// Debian builds Abseil with a string_view of its own, which a std::string_view does not turn into.
// View(s) passes a std::string_view to StrCat, StrAppend, StrFormat or a Status. Any thread; views
// the caller's bytes.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace quire {

constexpr absl::string_view View(std::string_view s) {
  return absl::string_view(s.data(), s.size());
}

}  // namespace quire
