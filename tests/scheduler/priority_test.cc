#include "scheduler/priority.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

constexpr MonotonicTime At(int64_t nanos) { return MonotonicTime{nanos}; }

TEST(Priority, RisesOneLevelPerAgeingTime) {
  EXPECT_EQ(EffectivePriority(-3, At(100), At(100), 10), -3);
  EXPECT_EQ(EffectivePriority(-3, At(100), At(109), 10), -3);
  EXPECT_EQ(EffectivePriority(-3, At(100), At(110), 10), -2);
  EXPECT_EQ(EffectivePriority(-3, At(100), At(155), 10), 2);
}

TEST(Priority, EndsAtTheHighest) {
  EXPECT_EQ(EffectivePriority(kMinPriority, At(0), At(200), 10), kMaxPriority);
  EXPECT_EQ(EffectivePriority(kMinPriority, At(0), At(INT64_MAX), 1), kMaxPriority);
  EXPECT_EQ(EffectivePriority(kMaxPriority, At(0), At(500), 10), kMaxPriority);
}

TEST(Priority, WithoutAgeingItStays) {
  EXPECT_EQ(EffectivePriority(2, At(0), At(INT64_MAX), 0), 2);
}

TEST(Priority, ATimeBeforeTheArrivalDoesNotLowerIt) {
  EXPECT_EQ(EffectivePriority(2, At(100), At(1), 10), 2);
}

}  // namespace
}  // namespace quire
