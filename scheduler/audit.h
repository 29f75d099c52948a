// For functions that check our own books and report what is wrong instead of dying: tests CHECK the
// result, a server that is idle tells its health.
//   AUDIT(free + used == total, "free ", free, ", used ", used);   // returns INTERNAL if it fails
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#define AUDIT(condition, ...)                                                                   \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      return ::absl::InternalError(::absl::StrCat(#condition ": " __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                                           \
  } while (false)
