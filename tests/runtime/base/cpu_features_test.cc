#include "runtime/base/cpu_features.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr IsaLevel kLevels[] = {IsaLevel::kScalar, IsaLevel::kAvx2, IsaLevel::kAvx512,
                                IsaLevel::kAvx512Bf16, IsaLevel::kAmx};

TEST(CpuFeatures, NamesAndLevelsAreOneToOne) {
  for (const IsaLevel isa : kLevels) EXPECT_EQ(*ParseIsa(IsaName(isa)), isa) << IsaName(isa);
}

TEST(CpuFeatures, UnknownNameIsRefusedWithTheKnownOnes) {
  for (const char* name : {"", "avx", "AVX2", "avx512 "}) {
    const absl::Status status = ParseIsa(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_NE(status.message().find("avx512_bf16"), absl::string_view::npos) << status;
  }
}

TEST(CpuFeatures, ActiveLevelIsNeverAboveTheDetectedOne) {
  EXPECT_LE(ActiveIsa(), DetectedIsa());
  EXPECT_EQ(ActiveIsa(), ActiveIsa());
}

#if defined(__x86_64__)
TEST(CpuFeatures, DetectionAgreesWithTheCompiler) {
  EXPECT_EQ(DetectedIsa() >= IsaLevel::kAvx2, __builtin_cpu_supports("avx2") &&
                                                  __builtin_cpu_supports("fma") &&
                                                  __builtin_cpu_supports("f16c"));
  EXPECT_EQ(DetectedIsa() >= IsaLevel::kAvx512,
            __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
}
#endif

// Each case needs a fresh process: the level is fixed by its first use.
TEST(CpuFeaturesDeathTest, EnvironmentLowersTheLevel) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("QUIRE_ISA", "scalar", 1);
        std::exit(CheckIsaEnvironment().ok() && ActiveIsa() == IsaLevel::kScalar ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(CpuFeaturesDeathTest, UnknownEnvironmentIsReportedAndIgnored) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("QUIRE_ISA", "sse9", 1);
        std::exit(!CheckIsaEnvironment().ok() && ActiveIsa() == DetectedIsa() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(CpuFeaturesDeathTest, SetLevelBeatsTheEnvironment) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("QUIRE_ISA", "amx", 1);
        std::exit(SetIsa(IsaLevel::kScalar).ok() && ActiveIsa() == IsaLevel::kScalar ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(CpuFeaturesDeathTest, LevelInUseCannotChange) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  if (DetectedIsa() == IsaLevel::kScalar) GTEST_SKIP() << "one level only on this processor";
  EXPECT_EXIT(
      {
        unsetenv("QUIRE_ISA");
        const IsaLevel first = ActiveIsa();
        const bool refused =
            SetIsa(IsaLevel::kScalar).code() == absl::StatusCode::kFailedPrecondition;
        std::exit(refused && ActiveIsa() == first ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace quire
