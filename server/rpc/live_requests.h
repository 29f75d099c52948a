// The register of live requests by tenant and the id that clients know: tenants do not see each
// other's. Any thread.
#pragma once

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "runtime/base/ids.h"

namespace quire {

class LiveRequests {
 public:
  struct Name {
    std::string tenant, id;
    friend bool operator==(const Name&, const Name&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Name& n) {
      return H::combine(std::move(h), n.tenant, n.id);
    }
  };
  // ALREADY_EXISTS REQUEST_ID_LIVE if a live request has that name.
  absl::Status Add(const Name& name, RequestId id);
  void Remove(const Name& name);
  RequestId Find(const Name& name) const;  // kNone: not live

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Name, RequestId> ids_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire
