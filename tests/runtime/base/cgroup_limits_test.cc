#include "runtime/base/cgroup_limits.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace quire {
namespace {

namespace fs = std::filesystem;

// A root folder with /proc/self and cgroup files in it.
class CgroupLimits : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "cgroup_limits_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void File(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  void MountV2(const std::string& root = "/") {
    File("/proc/self/mountinfo", "24 1 0:22 / / rw - ext4 /dev/sda rw\n30 24 0:26 " + root +
                                     " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw");
  }

  std::string root_;
};

TEST_F(CgroupLimits, NoFilesMeanNoLimit) {
  const HostLimits limits = ReadCgroupLimits(root_);
  EXPECT_EQ(limits.quota_cpus, 0);
  EXPECT_EQ(limits.cgroup_bytes, kUnlimitedBytes);
}

TEST_F(CgroupLimits, V2ReadsItsOwnGroup) {
  MountV2();
  File("/proc/self/cgroup", "0::/a/b");
  File("/sys/fs/cgroup/a/b/cpu.max", "150000 100000");
  File("/sys/fs/cgroup/a/b/memory.max", "1073741824");
  const HostLimits limits = ReadCgroupLimits(root_);
  EXPECT_EQ(limits.quota_cpus, 1.5);
  EXPECT_EQ(limits.cgroup_bytes, int64_t{1} << 30);
}

TEST_F(CgroupLimits, V2LowestLimitUpTheHierarchyWins) {
  MountV2();
  File("/proc/self/cgroup", "0::/a/b");
  File("/sys/fs/cgroup/a/b/cpu.max", "max 100000");
  File("/sys/fs/cgroup/a/b/memory.max", "max");
  File("/sys/fs/cgroup/a/cpu.max", "50000 100000");
  File("/sys/fs/cgroup/a/memory.max", "300");
  File("/sys/fs/cgroup/memory.max", "400");
  const HostLimits limits = ReadCgroupLimits(root_);
  EXPECT_EQ(limits.quota_cpus, 0.5);
  EXPECT_EQ(limits.cgroup_bytes, 300);
}

TEST_F(CgroupLimits, V2InsideANamespaceReadsTheMountPoint) {
  MountV2();
  File("/proc/self/cgroup", "0::/");
  File("/sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(ReadCgroupLimits(root_).quota_cpus, 2.0);
}

TEST_F(CgroupLimits, V1ReadsCpuAndMemoryFromTheirMounts) {
  File("/proc/self/mountinfo",
       "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
       "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
       "36 31 0:33 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset");
  File("/proc/self/cgroup", "4:memory:/m/x\n2:cpu,cpuacct:/c\n1:cpuset:/");
  File("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "300000");
  File("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000");
  File("/sys/fs/cgroup/memory/m/x/memory.limit_in_bytes", "9223372036854771712");
  File("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "4096000");
  const HostLimits limits = ReadCgroupLimits(root_);
  EXPECT_EQ(limits.quota_cpus, 3.0);
  EXPECT_EQ(limits.cgroup_bytes, 4096000);
}

TEST_F(CgroupLimits, V1WithoutLimitsSaysSo) {
  File("/proc/self/mountinfo",
       "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
       "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory");
  File("/proc/self/cgroup", "4:memory:/\n2:cpu:/");
  File("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  File("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  File("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  const HostLimits limits = ReadCgroupLimits(root_);
  EXPECT_EQ(limits.quota_cpus, 0);
  EXPECT_EQ(limits.cgroup_bytes, kUnlimitedBytes);
}

TEST_F(CgroupLimits, PathBeyondTheMountedRootIsCut) {
  MountV2("/docker/abc");
  File("/proc/self/cgroup", "0::/docker/abc/inner");
  File("/sys/fs/cgroup/inner/cpu.max", "100000 100000");
  EXPECT_EQ(ReadCgroupLimits(root_).quota_cpus, 1.0);
}

TEST_F(CgroupLimits, GarbageIsNoLimit) {
  MountV2();
  File("/proc/self/cgroup", "nonsense\n0::/a");
  File("/sys/fs/cgroup/a/cpu.max", "many few");
  File("/sys/fs/cgroup/a/memory.max", "lots");
  const HostLimits limits = ReadCgroupLimits(root_);
  EXPECT_EQ(limits.quota_cpus, 0);
  EXPECT_EQ(limits.cgroup_bytes, kUnlimitedBytes);
}

TEST(HostLimits, ThreadsRoundTheQuotaDownAndAreAtLeastOne) {
  EXPECT_EQ((HostLimits{.affinity_cpus = 8, .quota_cpus = 0}).Threads(), 8);
  EXPECT_EQ((HostLimits{.affinity_cpus = 8, .quota_cpus = 2.9}).Threads(), 2);
  EXPECT_EQ((HostLimits{.affinity_cpus = 8, .quota_cpus = 0.5}).Threads(), 1);
  EXPECT_EQ((HostLimits{.affinity_cpus = 2, .quota_cpus = 16}).Threads(), 2);
}

TEST(HostLimits, ThisHostHasProcessorsAndMemory) {
  const HostLimits limits = ReadHostLimits();
  EXPECT_GE(limits.affinity_cpus, 1);
  EXPECT_GT(limits.MemoryBytes(), int64_t{64} << 20);
}

}  // namespace
}  // namespace quire
