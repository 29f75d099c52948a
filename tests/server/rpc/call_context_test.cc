#include "server/rpc/call_context.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr MonotonicTime kNow{5'000'000'000};

gpr_timespec In(gpr_timespec span) { return gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), span); }

TEST(DeadlineOf, ADeadlineKeepsItsDistance) {
  const MonotonicTime deadline = DeadlineOf(In(gpr_time_from_minutes(1, GPR_TIMESPAN)), kNow);
  EXPECT_GT(SecondsBetween(kNow, deadline), 30);
  EXPECT_LE(SecondsBetween(kNow, deadline), 60);
}

TEST(DeadlineOf, NoDeadlineAndTheLongestOfTheProtocolAreForever) {
  EXPECT_EQ(DeadlineOf(gpr_inf_future(GPR_CLOCK_REALTIME), kNow), MonotonicTime::kInfinite);
  EXPECT_EQ(DeadlineOf(In(gpr_time_from_hours(99'999'999, GPR_TIMESPAN)), kNow),
            MonotonicTime::kInfinite);
}

TEST(DeadlineOf, AnAncientOneHasPassed) {
  EXPECT_LE(DeadlineOf(gpr_inf_past(GPR_CLOCK_REALTIME), kNow), kNow);
  EXPECT_LE(DeadlineOf(gpr_time_0(GPR_CLOCK_REALTIME), kNow), kNow);
}

}  // namespace
}  // namespace quire
