#include "server/rpc/live_requests.h"

#include "runtime/base/error_info.h"

namespace quire {

absl::Status LiveRequests::Add(const Name& name, RequestId id) {
  absl::MutexLock lock(&mutex_);
  if (ids_.emplace(name, id).second) return absl::OkStatus();
  return MakeError(absl::StatusCode::kAlreadyExists, "a request with this request_id is live",
                   {.reason = "REQUEST_ID_LIVE", .metadata = {}, .violations = {}});
}

void LiveRequests::Remove(const Name& name) {
  absl::MutexLock lock(&mutex_);
  ids_.erase(name);
}

RequestId LiveRequests::Find(const Name& name) const {
  absl::MutexLock lock(&mutex_);
  const auto it = ids_.find(name);
  return it == ids_.end() ? RequestId::kNone : it->second;
}

}  // namespace quire
