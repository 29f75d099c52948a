// What this process may use of the host: processors (affinity, cgroup quota) and memory (cgroup
// limit, RAM). Reads /proc and the cgroup file systems, v1 and v2; a file that is missing or
// unreadable is no limit. Values as of the call; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace quire {

inline constexpr int64_t kUnlimitedBytes = INT64_MAX;

struct HostLimits {
  int32_t affinity_cpus = 1;  // processors in this process's affinity mask
  double quota_cpus = 0;      // lowest CPU quota up the cgroup hierarchy, in processors; 0 = none
  int64_t cgroup_bytes = kUnlimitedBytes;  // lowest memory limit up the hierarchy
  int64_t ram_bytes = kUnlimitedBytes;     // of the machine

  // Kernel workers: min(affinity, quota rounded down), at least 1.
  int32_t Threads() const;
  int64_t MemoryBytes() const { return cgroup_bytes < ram_bytes ? cgroup_bytes : ram_bytes; }
};

HostLimits ReadHostLimits();

// The cgroup part alone. `root` stands for "/" and precedes every path read; tests give a folder of
// theirs.
HostLimits ReadCgroupLimits(const std::string& root);

}  // namespace quire
