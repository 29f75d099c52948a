#include "runtime/kernels/isa_limit.h"

#include <bit>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/kernels/hwy_targets.h"
#include "runtime/kernels/rms_norm.h"
#include "runtime/kernels/swiglu.h"

namespace quire {
namespace {

std::vector<uint32_t> BitsAt(IsaLevel isa) {
  LimitHighway(isa);
  std::vector<float> x, y, out(77);
  for (int32_t i = 0; i < 77; ++i) {
    x.push_back(static_cast<float>(i * 37 % 101) / 7 - 5);
    y.push_back(static_cast<float>(i * 53 % 89) / 11 - 3);
  }
  RmsNorm(x.data(), y.data(), 1e-5f, 77, out.data());
  std::vector<uint32_t> bits;
  for (float value : out) bits.push_back(std::bit_cast<uint32_t>(value));
  SwiGlu(x.data(), y.data(), 77, out.data());
  for (float value : out) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

TEST(IsaLimit, LowersWhatHighwayChoosesAndChangesNoBit) {
  const std::vector<uint32_t> best = BitsAt(DetectedIsa());
  EXPECT_EQ(BitsAt(IsaLevel::kAvx2), best);
  EXPECT_EQ(HighwayTargets() & HWY_AVX3, 0);
  EXPECT_EQ(BitsAt(IsaLevel::kScalar), best);
  EXPECT_EQ(HighwayTargets() & (HWY_AVX3 | HWY_AVX2), 0);
  LimitHighway(DetectedIsa());
  if (DetectedIsa() >= IsaLevel::kAvx512) {
    EXPECT_NE(HighwayTargets() & HWY_AVX3, 0);
  } else {
    GTEST_SKIP() << "no AVX-512 here: nothing to come back to";
  }
}

}  // namespace
}  // namespace quire
