#include "runtime/base/cgroup_limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace quire {
namespace {

// A mounted cgroup hierarchy that matters here.
struct Hierarchy {
  bool v2 = false, cpu = false, memory = false;
  std::string mount_root;  // the cgroup that is seen at the mount point, "/" outside containers
  std::string mount_point;
};

std::vector<std::string> ReadLines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::optional<int64_t> ParseNumber(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A one-line file as a number; nothing for "max", garbage or a missing file.
std::optional<int64_t> ReadNumber(const std::string& path) {
  const std::vector<std::string> lines = ReadLines(path);
  return lines.empty() ? std::nullopt : ParseNumber(lines[0]);
}

bool HasWord(const std::string& list, std::string_view word) {
  const std::vector<std::string> words = absl::StrSplit(list, ',');
  return std::ranges::find(words, word) != words.end();
}

// "36 31 0:32 /root /mount/point rw - cgroup cgroup rw,memory"
std::vector<Hierarchy> ReadHierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  for (const std::string& line : ReadLines(root + "/proc/self/mountinfo")) {
    const std::vector<std::string> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (halves.size() != 2) continue;
    const std::vector<std::string> left = absl::StrSplit(halves[0], ' ');
    const std::vector<std::string> right = absl::StrSplit(halves[1], ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    Hierarchy h{.mount_root = left[3], .mount_point = left[4]};
    if (right[0] == "cgroup2") {
      h.v2 = h.cpu = h.memory = true;
    } else if (right[0] == "cgroup") {
      h.cpu = HasWord(right[2], "cpu");
      h.memory = HasWord(right[2], "memory");
    }
    if (h.cpu || h.memory) found.push_back(std::move(h));
  }
  return found;
}

// The path of this process in a hierarchy, from /proc/self/cgroup: "4:memory:/path", v2 "0::/path".
std::string OwnPath(const std::string& root, const Hierarchy& h) {
  for (const std::string& line : ReadLines(root + "/proc/self/cgroup")) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const bool match =
        h.v2 ? parts[0] == "0" && parts[1].empty() : HasWord(parts[1], h.cpu ? "cpu" : "memory");
    if (match) return parts[2];
  }
  return "/";
}

// Folders from our own cgroup up to the mount point. A path beyond what is mounted (a container
// without a cgroup namespace) is cut by the mount's root.
std::vector<std::string> FoldersUp(const std::string& root, const Hierarchy& h) {
  std::string path = OwnPath(root, h);
  if (h.mount_root != "/") {
    path = path.starts_with(h.mount_root) ? path.substr(h.mount_root.size()) : "";
  }
  std::vector<std::string> folders;
  for (; !path.empty() && path != "/"; path.erase(path.rfind('/'))) {
    folders.push_back(absl::StrCat(root, h.mount_point, path[0] == '/' ? "" : "/", path));
    if (path.find('/') == std::string::npos) break;
  }
  folders.push_back(root + h.mount_point);
  return folders;
}

std::optional<double> QuotaCpus(const std::string& folder, bool v2) {
  std::optional<int64_t> quota, period;
  if (v2) {
    const std::vector<std::string> lines = ReadLines(folder + "/cpu.max");
    const std::vector<std::string> words = absl::StrSplit(lines.empty() ? "" : lines[0], ' ');
    if (words.size() == 2) {
      quota = ParseNumber(words[0]);
      period = ParseNumber(words[1]);
    }
  } else {
    quota = ReadNumber(folder + "/cpu.cfs_quota_us");
    period = ReadNumber(folder + "/cpu.cfs_period_us");
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

int32_t HostLimits::Threads() const {
  int32_t threads = affinity_cpus;
  if (quota_cpus > 0) {
    threads = static_cast<int32_t>(std::min<double>(threads, std::floor(quota_cpus)));
  }
  return std::max(threads, 1);
}

HostLimits ReadCgroupLimits(const std::string& root) {
  HostLimits limits;
  for (const Hierarchy& h : ReadHierarchies(root)) {
    for (const std::string& folder : FoldersUp(root, h)) {
      if (h.cpu) {
        if (const auto cpus = QuotaCpus(folder, h.v2)) {
          limits.quota_cpus = limits.quota_cpus > 0 ? std::min(limits.quota_cpus, *cpus) : *cpus;
        }
      }
      if (h.memory) {
        const auto bytes = ReadNumber(folder + (h.v2 ? "/memory.max" : "/memory.limit_in_bytes"));
        if (bytes && *bytes > 0) limits.cgroup_bytes = std::min(limits.cgroup_bytes, *bytes);
      }
    }
  }
  // v1 writes "no limit" as the largest multiple of a page.
  if (limits.cgroup_bytes >= int64_t{1} << 62) limits.cgroup_bytes = kUnlimitedBytes;
  return limits;
}

HostLimits ReadHostLimits() {
  HostLimits limits = ReadCgroupLimits("");
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) limits.affinity_cpus = CPU_COUNT(&set);
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) limits.ram_bytes = pages * page;
  return limits;
}

}  // namespace quire
