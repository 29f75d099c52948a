#include "server/rpc/caller.h"

#include <iterator>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/engine/tenants.h"
#include "server/rpc/violations.h"

namespace quire {
namespace {

// The one value of a key; nothing if it is absent, or given twice (a violation).
std::optional<std::string> Find(const CallMetadata& metadata, const char* key, Violations* v) {
  const auto [begin, end] = metadata.equal_range(key);
  if (begin == end) return std::nullopt;
  if (std::next(begin) != end) {
    v->Conflict(key, absl::StrCat("is given twice; ", key, " can have one value"));
    return std::nullopt;
  }
  return std::string(begin->second.data(), begin->second.size());
}

}  // namespace

absl::StatusOr<Caller> ReadCaller(const CallMetadata& metadata) {
  Violations violations;
  Caller caller;
  if (const auto tenant = Find(metadata, kTenantKey, &violations); tenant.has_value()) {
    if (!IsTenantName(*tenant)) {
      violations.Invalid(kTenantKey, "wanted 1..64 characters of a-z 0-9 _ -");
    }
    caller.tenant = *tenant;
  }
  if (const auto text = Find(metadata, kPriorityKey, &violations); text.has_value()) {
    int32_t value = 0;
    if (!(text->size() <= 4 && absl::SimpleAtoi(*text, &value) && value >= kLeastPriority &&
          value <= kMostPriority)) {
      violations.Invalid(kPriorityKey, "wanted an integer -10..10");
    }
    caller.priority = value;
  }
  if (!violations.empty()) return violations.ToStatus();
  return caller;
}

}  // namespace quire
