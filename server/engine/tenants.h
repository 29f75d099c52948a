// Tenants by name: the scheduler knows them by small indices. Bounded, and never forgets a name, so
// that an index means the same tenant for the life of the process. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace quire {

class Tenants {
 public:
  static constexpr int32_t kMost = 256;         // indices 0..255
  static constexpr int32_t kOther = kMost - 1;  // shared by all names that came too late
  static constexpr char kDefault[] = "";        // calls that name no tenant: index 0

  // `known` get indices 1, 2, ... in this order; at most kMost - 2 of them, distinct.
  explicit Tenants(const std::vector<std::string>& known = {});

  // The index of a tenant; a new name takes the next one while there are any.
  int32_t Index(const std::string& name);

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, int32_t> indices_ ABSL_GUARDED_BY(mutex_);
};

// 1..64 characters of a-z 0-9 _ -.
bool IsTenantName(std::string_view name);

}  // namespace quire
