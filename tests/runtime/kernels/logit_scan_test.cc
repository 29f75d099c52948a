// Every pass against its plain definition, bit for bit, on every instruction set that was built and
// runs here.
#include "runtime/kernels/logit_scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "runtime/kernels/hwy_targets.h"

namespace quire {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const std::vector<int32_t> kCounts = {1, 15, 16, 17, 255, 256, 257, 272, 1000, 2048};

std::vector<float> Values(int32_t count, float spread) {
  std::vector<float> x(static_cast<size_t>(count));
  uint32_t state = 12345u + static_cast<uint32_t>(count);
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = spread * (static_cast<float>(state >> 8) * 0x1p-24f - 1.0f);
  }
  return x;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class LogitScan : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(AllTargets, LogitScan,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

TEST_P(LogitScan, ExponentialsEqualTheirDefinitionAndTheLibrary) {
  for (const int32_t count : kCounts) {
    for (const float spread : {1e-3f, 1.0f, 20.0f, 200.0f}) {
      std::vector<float> x = Values(count, spread), got(x.size()), want(x.size());
      x[0] = -kInf;
      for (const float scale : {1.0f, 0.37f, 3.0f}) {
        ExpEach(x.data(), count, {0, scale}, got.data());
        ExpEachRef(x.data(), count, {0, scale}, want.data());
        ASSERT_TRUE(SameBits(got, want)) << count << " " << spread;
        for (size_t i = 0; i < x.size(); ++i) {
          const double y = static_cast<double>(x[i] * scale);
          const double exact = y < -87 ? 0.0 : std::exp(y);
          ASSERT_NEAR(got[i], exact, 2e-7 * exact) << y;
        }
      }
    }
  }
}

TEST_P(LogitScan, TheBestHasMassOne) {
  const float x[] = {3.25f, 3.0f};
  float out[2];
  ExpEach(x, 2, {3.25f, 0.7f}, out);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_LT(out[1], 1.0f);
}

TEST_P(LogitScan, GroupSumsEqualTheirDefinition) {
  for (const int32_t count : kCounts) {
    const std::vector<float> x = Values(count, 30.0f);
    std::vector<float> got(static_cast<size_t>((count + 255) / 256)), want(got.size());
    ExpSumGroups(x.data(), count, {0.5f, 0.8f}, got.data());
    ExpSumGroupsRef(x.data(), count, {0.5f, 0.8f}, want.data());
    EXPECT_TRUE(SameBits(got, want)) << count;
  }
}

TEST_P(LogitScan, CollectsIdsAndValuesAscending) {
  for (const int32_t count : kCounts) {
    const std::vector<float> x = Values(count, 1.0f);
    for (const float threshold : {-2.0f, -0.5f, -0.01f, x[0], 5.0f}) {
      const size_t room = x.size() + kScanPad;
      std::vector<int32_t> ids(room), want_ids(room);
      std::vector<float> values(room), want_values(room);
      const int32_t n =
          CollectAtLeast(x.data(), count, threshold, 512, {ids.data(), values.data()});
      ASSERT_EQ(n, CollectAtLeastRef(x.data(), count, threshold, 512,
                                     {want_ids.data(), want_values.data()}));
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        ASSERT_EQ(ids[i], want_ids[i]);
        ASSERT_EQ(values[i], want_values[i]);
      }
    }
  }
}

TEST_P(LogitScan, CountsAndFindsWhatItsDefinitionDoes) {
  for (const int32_t count : kCounts) {
    std::vector<float> x = Values(count, 1.0f);
    x.back() = x[x.size() / 2] = -0.25f;
    for (const float value : {-0.25f, -0.5f, 3.0f, x[0]}) {
      const CompareCounts got = CountAgainst(x.data(), count, value);
      const CompareCounts want = CountAgainstRef(x.data(), count, value);
      EXPECT_EQ(got.greater, want.greater);
      EXPECT_EQ(got.equal, want.equal);
      EXPECT_EQ(FindFirst(x.data(), count, value), FindFirstRef(x.data(), count, value));
    }
  }
}

TEST_P(LogitScan, GroupMaximaShowANaNInItsGroupOnly) {
  std::vector<float> x = Values(1000, 1.0f), got(4), want(4);
  x[300] = std::numeric_limits<float>::quiet_NaN();
  GroupMaxima(x.data(), 1000, got.data());
  GroupMaximaRef(x.data(), 1000, want.data());
  for (const size_t g : {0, 2, 3}) EXPECT_EQ(got[g], want[g]);
  EXPECT_TRUE(std::isnan(got[1]) && std::isnan(want[1]));
}

}  // namespace
}  // namespace quire
