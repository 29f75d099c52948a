// The register of live requests by the id that clients know. Any thread.
#pragma once

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "runtime/base/ids.h"

namespace quire {

class LiveRequests {
 public:
  // ALREADY_EXISTS REQUEST_ID_LIVE if a live request has that name.
  absl::Status Add(const std::string& name, RequestId id);
  void Remove(const std::string& name);
  RequestId Find(const std::string& name) const;  // kNone: not live

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, RequestId> ids_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire
