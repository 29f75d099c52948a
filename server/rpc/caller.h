// Who calls, and how urgently: metadata x-quire-tenant and x-quire-priority. Until calls carry
// tokens the server believes what they say, so a deployment lets only trusted peers set them. Pure;
// any thread.
#pragma once

#include <grpcpp/support/string_ref.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

using CallMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

inline constexpr char kTenantKey[] = "x-quire-tenant", kPriorityKey[] = "x-quire-priority";
inline constexpr int32_t kLeastPriority = -10, kMostPriority = 10;

struct Caller {
  std::string tenant;                 // Tenants::kDefault if the call names none
  std::optional<int32_t> priority{};  // unset: the call says nothing
};

// INVALID_ARGUMENT FIELD_INVALID, or FIELD_CONFLICT for a key that is given twice.
absl::StatusOr<Caller> ReadCaller(const CallMetadata& metadata);

}  // namespace quire
