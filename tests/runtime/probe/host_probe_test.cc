#include "runtime/probe/host_probe.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/cpu_features.h"
#include "runtime/probe/rates.h"

namespace quire {
namespace {

TEST(HostProbe, MeasuresEveryValueOnAnyNumberOfWorkers) {
  for (const int threads : {1, 2}) {
    WorkerPool pool({.threads = threads, .pin = false});
    absl::StatusOr<HostProbe> probe =
        HostProbe::Create(&pool, {.buffer_bytes = 4 << 20, .seconds_per_value = 0});
    ASSERT_TRUE(probe.ok()) << probe.status();
    const ProbeResult r = probe->Run();
    for (const double value : {r.dram_gbps, r.dram_gbps_1t, r.barrier_ns, r.ghz}) {
      EXPECT_TRUE(std::isfinite(value) && value > 0) << value << " with " << threads;
    }
    EXPECT_EQ(r.u8s8_gops > 0, ActiveIsa() >= IsaLevel::kAvx2);
    EXPECT_TRUE(std::isfinite(r.f32_gflops) &&
                r.f32_gflops >= 0);  // 0 where code cannot be generated
  }
}

TEST(HostProbe, ReadsEveryLineOfItsBuffer) {
  alignas(64) std::byte data[64 * 7] = {};
  const uint64_t zero = ReadLines(data, sizeof data);
  for (size_t line = 0; line < 7; ++line) {
    for (size_t word = 0; word < 8; ++word) {
      std::byte& b = data[line * 64 + word * 8];
      b = std::byte{1};
      EXPECT_NE(ReadLines(data, sizeof data), zero) << line << " " << word;
      b = std::byte{0};
    }
  }
}

TEST(HostProbe, BufferExceedsTheCacheWithinAQuarterOfTheFreeMemory) {
  constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
  EXPECT_EQ(ChooseProbeBytes(32 * kMiB, 16 * kGiB), 128 * kMiB);
  EXPECT_EQ(ChooseProbeBytes(260 * kMiB, 16 * kGiB), 520 * kMiB);
  EXPECT_EQ(ChooseProbeBytes(2 * kGiB, 64 * kGiB), kGiB);
  EXPECT_EQ(ChooseProbeBytes(260 * kMiB, 1 * kGiB), 256 * kMiB);
  EXPECT_EQ(ChooseProbeBytes(0, 0), kMiB);
}

}  // namespace
}  // namespace quire
