#include "server/engine/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "runtime/base/error_info.h"
#include "server/engine/intake.h"
#include "tests/testing/manual_clock.h"

namespace quire {
namespace {

using testing::Contains;
using testing::Pair;

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest() { SetRates({.prefill_tokens_per_second = 1000, .steps_per_second = 100}); }
  void SetRates(const ServiceRates& rates) {
    StepStats stats;
    stats.rates = rates;
    stats.running = running_;
    admission_.SetLoad(stats);
  }
  // A request of `tokens` ids that has `left_ms` to live.
  ValidRequest Ask(int tokens, int64_t left_ms) {
    ValidRequest request;
    request.id = NextRequestId();
    request.prompt.source = std::vector<TokenId>(static_cast<size_t>(tokens), TokenId{1});
    request.stop.max_tokens = 20;
    request.deadline = AddNanos(clock_.Now(), left_ms * 1'000'000);
    return request;
  }

  ManualClock clock_;
  Inbox inbox_{InboxLimits{.sequences = 10, .waiting_tokens = 5000}};
  Admission admission_{
      {.max_running = 4, .default_max_tokens = 30, .max_queue_ms = 3000, .by_deadline = true},
      &inbox_,
      &clock_};
  int32_t running_ = 0;
};

TEST_F(AdmissionTest, LetsInWhatCanMakeItsDeadline) {
  EXPECT_TRUE(admission_.Enter(Ask(1000, 1100)).ok());
  ValidRequest forever = Ask(1000, 0);
  forever.deadline = MonotonicTime::kInfinite;
  EXPECT_TRUE(admission_.Enter(forever).ok());
}

TEST_F(AdmissionTest, ADeadlineThatNoQueueLengthCouldMeetIsOver) {
  const absl::Status status = admission_.Enter(Ask(1000, 900));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  const ErrorInfo info = GetErrorInfo(status);
  EXPECT_EQ(info.reason, "DEADLINE");
  EXPECT_THAT(info.metadata, Contains(Pair("stage", "admission")));
  EXPECT_THAT(info.metadata, Contains(Pair("estimate_ms", "1000")));
  EXPECT_THAT(info.metadata, Contains(Pair("limit_ms", "900")));
  EXPECT_EQ(info.retry_delay_ms, -1) << "coming back would not help";
  EXPECT_EQ(inbox_.live(), 0);
}

TEST_F(AdmissionTest, ADeadlineThatTheQueueMakesImpossibleIsRefusedWithADelay) {
  ASSERT_TRUE(admission_.Enter(Ask(1000, 5000)).ok());
  ASSERT_TRUE(admission_.Enter(Ask(1000, 5000)).ok());
  const absl::Status status = admission_.Enter(Ask(500, 2400));  // 2 s of others, 0.5 s of its own
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorInfo(status).reason, "QUEUE_AGE");
  EXPECT_THAT(GetErrorInfo(status).metadata, Contains(Pair("estimate_ms", "2500")));
  EXPECT_GE(GetErrorInfo(status).retry_delay_ms, 1500);
  EXPECT_LE(GetErrorInfo(status).retry_delay_ms, 2500);
  EXPECT_TRUE(admission_.Enter(Ask(500, 2600)).ok());
}

TEST_F(AdmissionTest, PromptsThatRunAreAheadToo) {
  StepStats stats;
  stats.rates = {.prefill_tokens_per_second = 1000, .steps_per_second = 100};
  stats.running = 1;
  stats.prompt_backlog = 2000;
  admission_.SetLoad(stats);
  EXPECT_EQ(GetErrorInfo(admission_.Enter(Ask(500, 2400))).reason, "QUEUE_AGE");
  EXPECT_TRUE(admission_.Enter(Ask(500, 2600)).ok());
}

TEST_F(AdmissionTest, WhoGoesBeforeTheQueueIsNotHeldUpByIt) {
  ASSERT_TRUE(admission_.Enter(Ask(1000, 5000)).ok());
  ValidRequest urgent = Ask(500, 700);
  EXPECT_FALSE(admission_.Enter(urgent).ok());
  urgent.priority = 1;
  EXPECT_TRUE(admission_.Enter(urgent).ok());
}

TEST_F(AdmissionTest, CountsTheTokensThatAnOutputIsCertainToHave) {
  ValidRequest request = Ask(100, 200);  // 20 tokens more would take 190 ms
  EXPECT_TRUE(admission_.Enter(request).ok()) << "it may end at its first token";
  request.id = NextRequestId();
  request.stop.ignore_eos = true;
  EXPECT_FALSE(admission_.Enter(request).ok());
  request.stop.stop_strings = {"x"};
  EXPECT_TRUE(admission_.Enter(request).ok());
}

TEST_F(AdmissionTest, AWaitBeyondTheLongestIsRefusedToo) {
  ASSERT_TRUE(admission_.Enter(Ask(3100, 60'000)).ok());
  ValidRequest patient = Ask(10, 0);
  patient.deadline = MonotonicTime::kInfinite;
  const ErrorInfo info = GetErrorInfo(admission_.Enter(patient));
  EXPECT_EQ(info.reason, "QUEUE_AGE");
  EXPECT_THAT(info.metadata, Contains(Pair("limit_ms", "3000")));
}

TEST_F(AdmissionTest, APromptIsJudgedAgainOnceItIsCounted) {
  ValidRequest request = Ask(1, 900);
  request.prompt.source = std::string("some text");
  ASSERT_TRUE(admission_.Enter(request).ok());
  EXPECT_EQ(admission_.Count(request, 1000).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(admission_.Count(request, 100).ok());
  EXPECT_EQ(inbox_.waiting_tokens(), 100);
}

TEST_F(AdmissionTest, ItsOwnOutputsAndPromptAreNotAheadOfIt) {
  SetRates({.prefill_tokens_per_second = 1000, .steps_per_second = 1000, .ends_per_second = 0.1});
  ValidRequest request = Ask(1000, 1100);
  request.num_sequences = 4;  // as many as run at once
  ASSERT_TRUE(admission_.Enter(request).ok());
  EXPECT_TRUE(admission_.Count(request, 1000).ok());
  const absl::Status status = admission_.Count(request, 2000);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << "late all by itself";
}

TEST_F(AdmissionTest, KnowsNothingBeforeTheFirstSteps) {
  SetRates({});
  EXPECT_TRUE(admission_.Enter(Ask(4000, 1)).ok());
}

TEST_F(AdmissionTest, RefusesAtOnceWhenThereIsNoRoom) {
  ValidRequest request = Ask(10, 60'000);
  request.num_sequences = 8;
  ASSERT_TRUE(admission_.Enter(request).ok());
  request.id = NextRequestId();
  request.num_sequences = 3;
  const absl::Status full = admission_.Enter(request);
  EXPECT_EQ(full.message(),
            "the server is full: at most 10 sequences run or wait (max_running 4 + max_waiting 6)");
  const ErrorInfo sequences = GetErrorInfo(full);
  EXPECT_EQ(sequences.reason, "QUEUE_FULL");
  EXPECT_THAT(sequences.metadata, Contains(Pair("limit", "10")));
  EXPECT_GE(sequences.retry_delay_ms, 50);
  const absl::Status long_queue = admission_.Enter(Ask(4991, 60'000));
  EXPECT_EQ(long_queue.message(), "the queue is full: at most 5000 prompt tokens wait");
  const ErrorInfo tokens = GetErrorInfo(long_queue);
  EXPECT_EQ(tokens.reason, "QUEUE_TOKENS_FULL");
  EXPECT_THAT(tokens.metadata, Contains(Pair("limit", "5000")));
  EXPECT_EQ(inbox_.live(), 1);
}

}  // namespace
}  // namespace quire
