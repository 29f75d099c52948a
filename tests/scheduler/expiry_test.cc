#include "scheduler/expiry.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

Request At(int64_t arrival, MonotonicTime time_limit, MonotonicTime deadline) {
  Request request;
  request.arrival = MonotonicTime{arrival};
  request.time_limit = time_limit;
  request.deadline = deadline;
  return request;
}

TEST(Expiry, TheEarliestLimitNamesTheReason) {
  const Request limit_first = At(0, MonotonicTime{5}, MonotonicTime{6});
  EXPECT_EQ(ExpiryOf(limit_first, true, 100).reason, FinishReason::kTimeLimit);
  const Request deadline_first = At(0, MonotonicTime{7}, MonotonicTime{6});
  EXPECT_EQ(ExpiryOf(deadline_first, true, 100).reason, FinishReason::kDeadline);
  EXPECT_EQ(ExpiryOf(deadline_first, true, 100).time, MonotonicTime{6});
}

TEST(Expiry, ATieIsTheTimeLimits) {
  EXPECT_EQ(ExpiryOf(At(0, MonotonicTime{6}, MonotonicTime{6}), false, 6).reason,
            FinishReason::kTimeLimit);
}

TEST(Expiry, QueueAgeCountsUntilTheStartOnly) {
  const Request request = At(10, MonotonicTime::kInfinite, MonotonicTime{500});
  EXPECT_EQ(ExpiryOf(request, false, 100).reason, FinishReason::kQueueAge);
  EXPECT_EQ(ExpiryOf(request, false, 100).time, MonotonicTime{110});
  EXPECT_EQ(ExpiryOf(request, true, 100).reason, FinishReason::kDeadline);
}

TEST(Expiry, NeverWithoutLimits) {
  const Expiry expiry =
      ExpiryOf(At(10, MonotonicTime::kInfinite, MonotonicTime::kInfinite), false, INT64_MAX);
  EXPECT_EQ(expiry.time, MonotonicTime::kInfinite);
  EXPECT_EQ(expiry.reason, FinishReason::kNone);
}

}  // namespace
}  // namespace quire
