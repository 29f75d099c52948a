#include "server/engine/tenants.h"

#include <algorithm>

#include "absl/log/check.h"

namespace quire {

Tenants::Tenants(const std::vector<std::string>& known) {
  CHECK_LE(known.size(), static_cast<size_t>(kMost - 2));
  absl::MutexLock lock(&mutex_);
  indices_.emplace(kDefault, 0);
  for (const std::string& name : known) {
    CHECK(indices_.emplace(name, static_cast<int32_t>(indices_.size())).second) << "given twice";
  }
}

int32_t Tenants::Index(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (const auto it = indices_.find(name); it != indices_.end()) return it->second;
  const auto next = static_cast<int32_t>(indices_.size());
  if (next >= kOther) return kOther;
  indices_.emplace(name, next);
  return next;
}

bool IsTenantName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace quire
