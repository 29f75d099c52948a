#include "server/metrics/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace quire {
namespace {

double StartTimeSeconds() {
  std::ifstream stat("/proc/self/stat");
  std::string text;
  std::getline(stat, text);
  const size_t after_name = text.rfind(')');
  if (after_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(after_name + 1));
  std::string field;
  for (int i = 0; i < 19; ++i) fields >> field;  // fields 3..21
  double ticks = 0;
  fields >> ticks;
  std::ifstream proc("/proc/stat");
  while (proc >> field) {
    if (field != "btime") continue;
    double boot = 0;
    proc >> boot;
    return boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return 0;
}

double ThrottledSeconds() {
  std::ifstream stat("/sys/fs/cgroup/cpu.stat");
  std::string key;
  double value = 0;
  while (stat >> key >> value) {
    if (key == "throttled_usec") return value * 1e-6;
    if (key == "throttled_time") return value * 1e-9;
  }
  return 0;
}

}  // namespace

ProcessStats ReadProcessStats() {
  ProcessStats stats;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    stats.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  if (statm >> total >> resident) stats.resident_bytes = resident * sysconf(_SC_PAGESIZE);
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    ++stats.open_fds;
  }
  static const double start_time = StartTimeSeconds();  // constant, so that the series is too
  stats.start_time_seconds = start_time;
  stats.throttled_seconds = ThrottledSeconds();
  return stats;
}

}  // namespace quire
