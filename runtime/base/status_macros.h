// RETURN_IF_ERROR and ASSIGN_OR_RETURN for functions that return absl::Status or absl::StatusOr.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define QUIRE_CONCAT_INNER_(a, b) a##b
#define QUIRE_CONCAT_(a, b) QUIRE_CONCAT_INNER_(a, b)

#define RETURN_IF_ERROR(expr)                                         \
  do {                                                                \
    if (absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL_(QUIRE_CONCAT_(status_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr)   \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)
