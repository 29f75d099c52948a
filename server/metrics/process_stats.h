// What the kernel says about this process, for the unprefixed process_* families. Reads /proc; any
// thread.
#pragma once

#include <cstdint>

namespace quire {

struct ProcessStats {
  double cpu_seconds = 0, start_time_seconds = 0;  // start: since the epoch
  int64_t resident_bytes = 0, open_fds = 0;
  double throttled_seconds = 0;  // of the cgroup, 0 if unknown
};

ProcessStats ReadProcessStats();

}  // namespace quire
