// Numbers of things for people to read. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace quire {

// "1 thread", "2 threads".
inline std::string Counted(int64_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace quire
