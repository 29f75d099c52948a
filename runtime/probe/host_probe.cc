#include "runtime/probe/host_probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/cgroup_limits.h"
#include "runtime/base/status_macros.h"
#include "runtime/probe/rates.h"

namespace quire {
namespace {

constexpr int32_t kM = 32, kN = 64,
                  kK = 64;  // of the f32 product: A, B and C stay in the first-level cache
constexpr uint64_t kMiB = 1 << 20;
constexpr int kSlices = 8;  // of the buffer
constexpr int kRounds = 3;  // at least, per value

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Calls `round` (with 0, 1, ...) at least `rounds` times and until `seconds` have passed; returns
// the shortest round's time in seconds: the least disturbed.
template <typename F>
double BestRound(double seconds, int rounds, F&& round) {
  const double start = Seconds();
  double best = 1e30, now = start;
  for (int i = 0; i < rounds || now - start < seconds; ++i) {
    round(i);
    const double end = Seconds();
    best = std::min(best, end - now);
    now = end;
  }
  return std::max(best, 1e-9);
}

// Largest cache of the first processor, 0 if unknown.
uint64_t LastLevelCacheBytes() {
  uint64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream in("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    uint64_t kib = 0;  // the file says "36608K"
    if (in >> kib) largest = std::max(largest, kib * 1024);
  }
  return largest;
}

uint64_t FreeBytes() {
  const int64_t limit = ReadHostLimits().MemoryBytes();
  uint64_t available = static_cast<uint64_t>(std::max<int64_t>(limit, 0));
  std::ifstream in("/proc/meminfo");
  for (std::string name, unit; in >> name;) {
    uint64_t kib = 0;
    in >> kib;
    std::getline(in, unit);
    if (name == "MemAvailable:") available = std::min(available, kib * 1024);
  }
  return available;
}

}  // namespace

size_t ChooseProbeBytes(uint64_t last_level_cache_bytes, uint64_t free_bytes) {
  const uint64_t wanted = std::clamp(last_level_cache_bytes * 2, 128 * kMiB, 1024 * kMiB);
  return std::max<uint64_t>(std::min(wanted, free_bytes / 4), kMiB);
}

absl::StatusOr<HostProbe> HostProbe::Create(WorkerPool* pool, const ProbeOptions& options) {
  const size_t bytes = options.buffer_bytes != 0
                           ? options.buffer_bytes
                           : ChooseProbeBytes(LastLevelCacheBytes(), FreeBytes());
  ASSIGN_OR_RETURN(Arena buffer, Arena::Create(bytes));
  buffer.Touch();
  HostProbe probe(pool, options, std::move(buffer));
  probe.base_ = probe.buffer_.Take(probe.buffer_.size()).data();
  absl::StatusOr<Brgemm> brgemm =
      Brgemm::Create({.m = kM, .n = kN, .k = kK, .lda = kK, .ldb = kN, .ldc = kN});
  probe.has_brgemm_ = brgemm.ok();
  if (brgemm.ok()) probe.brgemm_ = *std::move(brgemm);
  return probe;
}

HostProbe::HostProbe(WorkerPool* pool, const ProbeOptions& options, Arena buffer)
    : pool_(pool), seconds_(options.seconds_per_value), buffer_(std::move(buffer)) {}

// Each round reads the next slice, so a line comes back only after the whole buffer: short rounds,
// yet from DRAM.
double HostProbe::ReadGbps(int32_t readers) {
  std::atomic<uint64_t> sink = 0;
  const auto megabytes = static_cast<int32_t>(buffer_.size() / kMiB);
  const int32_t slice = std::max(1, megabytes / kSlices);
  const double best = BestRound(seconds_, kSlices, [&](int round) {
    const int32_t first = round % kSlices * slice % megabytes;
    pool_->Run([&](int32_t worker) {
      if (worker >= readers) return;
      const IndexRange part = SplitEvenly(std::min(slice, megabytes - first), worker, readers);
      sink ^= ReadLines(base_ + static_cast<size_t>(first + part.begin) * kMiB,
                        static_cast<size_t>(part.end - part.begin) * kMiB);
    });
  });
  return static_cast<double>(slice) * static_cast<double>(kMiB) / best * 1e-9;
}

double HostProbe::DramGbps() { return ReadGbps(pool_->size()); }

double HostProbe::F32Gflops() {
  if (!has_brgemm_) return 0;
  constexpr int kCalls = 200;
  struct alignas(64) Buffers {
    float a[kM * kK], b[kK * kN], c[kM * kN];
  };
  std::vector<Buffers> buffers(static_cast<size_t>(pool_->size()));
  std::vector<std::vector<std::byte>> scratch(buffers.size(),
                                              std::vector<std::byte>(brgemm_.scratch_bytes() + 64));
  const double best = BestRound(seconds_, kRounds, [&](int) {
    pool_->Run([&](int32_t worker) {
      Buffers& mine = buffers[static_cast<size_t>(worker)];
      std::byte* space = scratch[static_cast<size_t>(worker)].data();
      space += (64 - reinterpret_cast<uintptr_t>(space) % 64) % 64;
      for (int i = 0; i < kCalls; ++i) brgemm_.Run(mine.a, mine.b, mine.c, space);
    });
  });
  return 2.0 * kM * kN * kK * kCalls / best * 1e-9;
}

double HostProbe::Int8Gops() {
  constexpr int64_t kInt8Rounds = 100'000;
  std::vector<double> done(static_cast<size_t>(pool_->size()));
  const double best = BestRound(seconds_, kRounds, [&](int) {
    pool_->Run(
        [&](int32_t worker) { done[static_cast<size_t>(worker)] = RunInt8Rounds(kInt8Rounds); });
  });
  return done[0] / best * 1e-9;
}

double HostProbe::BarrierNanos() {
  // Few: a barrier takes milliseconds when other processes use the cores.
  constexpr int kBarriers = 50;
  const double best = BestRound(seconds_, 1, [&](int) {
    pool_->Run([&](int32_t) {
      for (int i = 0; i < kBarriers; ++i) pool_->Barrier();
    });
  });
  return best / kBarriers * 1e9;
}

ProbeResult HostProbe::Run() {
  constexpr int64_t kAdds = 160'000;
  ProbeResult result;
  result.dram_gbps = DramGbps();
  result.dram_gbps_1t = ReadGbps(1);
  result.f32_gflops = F32Gflops();
  result.u8s8_gops = Int8Gops();
  result.barrier_ns = BarrierNanos();
  result.ghz = static_cast<double>(kAdds) /
               BestRound(seconds_, kRounds, [](int) { RunAddChain(kAdds); }) * 1e-9;
  return result;
}

}  // namespace quire
