#include "server/engine/intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "runtime/base/error_info.h"
#include "server/engine/retry_delay.h"
#include "tests/testing/fake_tokenizer.h"
#include "tests/testing/manual_clock.h"

namespace quire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class IntakeTest : public testing::Test {
 protected:
  IntakeTest() : encoder_(&tokenizer_, nullptr), inbox_(3) { Make({100, 8}); }
  ~IntakeTest() override { intake_.reset(); }
  void Make(CapacityLimits capacity, int32_t max_jobs = 2) {
    intake_.reset();
    intake_ = std::make_unique<Intake>(IntakeOptions{.capacity = capacity,
                                                     .vocab_size = 300,
                                                     .eos_ids = {TokenId{257}},
                                                     .default_max_tokens = 16,
                                                     .max_request_ms = 5000,
                                                     .max_jobs = max_jobs},
                                       IntakeLinks{&encoder_, &inbox_, &events_, &clock_});
  }
  ValidRequest Ask(std::string text) {
    ValidRequest request;
    request.id = NextRequestId();
    request.prompt.source = std::move(text);
    request.prompt.add_special_tokens = false;
    request.arrival = clock_.Now();
    return request;
  }
  // The request as the engine gets it; fails the test if it was refused.
  Request Accepted(ValidRequest request) {
    EXPECT_TRUE(intake_->Submit(std::move(request)).ok());
    EXPECT_TRUE(intake_->RunOne());
    InboxMessages messages;
    inbox_.Drain(messages);
    events_.Take(batch_, absl::ZeroDuration());
    EXPECT_THAT(batch_.refused, IsEmpty());
    if (messages.submits.size() != 1) {
      ADD_FAILURE() << "no request reached the engine";
      return {};
    }
    inbox_.Finished(std::vector<RequestId>{messages.submits[0].id});
    return std::move(messages.submits[0]);
  }
  RequestRefused Refused(ValidRequest request) {
    EXPECT_TRUE(intake_->Submit(std::move(request)).ok());
    EXPECT_TRUE(intake_->RunOne());
    events_.Take(batch_, absl::ZeroDuration());
    if (batch_.refused.size() != 1) {
      ADD_FAILURE() << "not refused";
      return {};
    }
    EXPECT_EQ(inbox_.live(), 0) << "a refused request holds nothing";
    return batch_.refused[0];
  }
  // Tells done_ its name and how it ended.
  IntakeJob Job(std::string name, size_t bytes) {
    return {.bytes = bytes, .run = [this, name = std::move(name)](const absl::Status& end) {
              done_.push_back(name + " " + absl::StatusCodeToString(end.code()));
              last_ = end;
            }};
  }
  void RunAll() {
    while (intake_->RunOne()) {
    }
  }
  uint64_t Rejected(RejectReason reason) {
    return intake_->Stats().rejected[static_cast<size_t>(reason)];
  }

  ManualClock clock_;
  FakeTokenizer tokenizer_;
  PromptEncoder encoder_;
  StepEvents events_;
  Inbox inbox_;
  EventBatch batch_;
  std::vector<std::string> done_;
  absl::Status last_;
  std::unique_ptr<Intake> intake_;
};

TEST_F(IntakeTest, PreparesARequest) {
  ValidRequest ask = Ask("abc");
  ask.sampling.seed = 5;
  ask.stop.min_tokens = 2;
  ask.stop.stop_token_ids = {TokenId{9}};
  ask.deadline = AddNanos(clock_.Now(), 1'000'000'000);
  const MonotonicTime arrival = ask.arrival;
  const Request request = Accepted(std::move(ask));
  EXPECT_THAT(request.prompt, ElementsAre(TokenId{'a'}, TokenId{'b'}, TokenId{'c'}));
  EXPECT_EQ(request.sampling.seed, 5u);
  EXPECT_EQ(request.stop.max_tokens, 16);
  EXPECT_EQ(request.stop.min_tokens, 2);
  EXPECT_THAT(request.stop.eos_ids, ElementsAre(TokenId{257}));
  EXPECT_THAT(request.stop.stop_ids, ElementsAre(TokenId{9}));
  EXPECT_EQ(request.time_limit, AddNanos(arrival, 5'000'000'000));
  EXPECT_EQ(request.deadline, AddNanos(arrival, 1'000'000'000));
  ASSERT_EQ(batch_.prepared.size(), 1u);
  EXPECT_EQ(batch_.prepared[0].prompt_tokens, 3);
  EXPECT_EQ(batch_.prepared[0].length_bound, LengthBound::kDefault);
}

TEST_F(IntakeTest, TheSmallestBoundOfTheOutputIsNamed) {
  ValidRequest ask = Ask("abc");
  ask.stop.max_tokens = 7;
  EXPECT_EQ(Accepted(std::move(ask)).stop.max_tokens, 7);
  EXPECT_EQ(batch_.prepared[0].length_bound, LengthBound::kRequest);

  ask = Ask(std::string(90, 'x'));
  ask.stop.max_tokens = 50;
  EXPECT_EQ(Accepted(std::move(ask)).stop.max_tokens, 10);
  EXPECT_EQ(batch_.prepared[0].length_bound, LengthBound::kContext);

  Make({1000, 1});
  ask = Ask(std::string(60, 'x'));
  ask.stop.max_tokens = 50;
  EXPECT_EQ(Accepted(std::move(ask)).stop.max_tokens, 4);
  EXPECT_EQ(batch_.prepared[0].length_bound, LengthBound::kPool);
}

TEST_F(IntakeTest, APromptThatCanNeverFitIsRefusedWithBothNumbers) {
  const ErrorInfo context = GetErrorInfo(Refused(Ask(std::string(100, 'x'))).status);
  EXPECT_EQ(context.reason, "PROMPT_TOO_LONG");
  EXPECT_THAT(context.metadata, ElementsAre(Pair("actual", "100"), Pair("limit", "99")));
  Make({1000, 1});
  const ErrorInfo pool = GetErrorInfo(Refused(Ask(std::string(64, 'x'))).status);
  EXPECT_EQ(pool.reason, "KV_POOL_TOO_SMALL");
  EXPECT_THAT(pool.metadata, ElementsAre(Pair("needed_blocks", "2"), Pair("total_blocks", "1")));
  EXPECT_EQ(Rejected(RejectReason::kKvPoolTooSmall), 1u);
}

TEST_F(IntakeTest, AnIdBeyondTheVocabularyIsRefusedByIndex) {
  ValidRequest ask = Ask("");
  ask.prompt.source = std::vector<TokenId>{TokenId{1}, TokenId{300}};
  const ErrorInfo info = GetErrorInfo(Refused(std::move(ask)).status);
  ASSERT_EQ(info.violations.size(), 1u);
  EXPECT_EQ(info.violations[0].field, "prompt.tokens.ids[1]");
}

TEST_F(IntakeTest, TimeThatIsOverInIntakeEndsTheRequestThere) {
  ValidRequest ask = Ask("abc");
  ask.deadline = AddNanos(clock_.Now(), 1000);
  clock_.AdvanceMillis(1);
  EXPECT_EQ(Refused(ask).reason, FinishReason::kDeadline);
  ask = Ask("abc");
  ask.stop.time_limit_ms = 1;
  clock_.AdvanceMillis(1);
  EXPECT_EQ(Refused(ask).reason, FinishReason::kTimeLimit);
  EXPECT_EQ(Rejected(RejectReason::kDeadline), 1u);
  EXPECT_EQ(Rejected(RejectReason::kTimeLimit), 1u);
}

TEST_F(IntakeTest, ARequestAbortedInIntakeIsNotTokenized) {
  const ValidRequest ask = Ask(std::string(1000, 'x'));  // would be too long
  ASSERT_TRUE(intake_->Submit(ask).ok());
  inbox_.Abort(ask.id, FinishReason::kCancelled);
  ASSERT_TRUE(intake_->RunOne());
  events_.Take(batch_, absl::ZeroDuration());
  ASSERT_EQ(batch_.refused.size(), 1u);
  EXPECT_TRUE(batch_.refused[0].status.ok());
  EXPECT_EQ(batch_.refused[0].reason, FinishReason::kCancelled);
  EXPECT_EQ(Rejected(RejectReason::kCancelled), 1u);
}

TEST_F(IntakeTest, RefusesAtOnceWhenEverySlotIsTaken) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(intake_->Submit(Ask("a")).ok());
  const absl::Status status = intake_->Submit(Ask("a"));
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(GetErrorInfo(status).reason, "QUEUE_FULL");
  EXPECT_GE(GetErrorInfo(status).retry_delay_ms, 50);
  EXPECT_EQ(intake_->Stats().received, 4u);
  EXPECT_EQ(Rejected(RejectReason::kQueueFull), 1u);
}

TEST_F(IntakeTest, DrainingRefusesNewRequestsAndStopEndsWaitingOnes) {
  EXPECT_TRUE(intake_->Submit(Ask("a")).ok());
  intake_->StartDraining();
  EXPECT_EQ(GetErrorInfo(intake_->Submit(Ask("b"))).reason, "DRAINING");
  intake_->Stop();
  events_.Take(batch_, absl::ZeroDuration());
  ASSERT_EQ(batch_.refused.size(), 1u);
  EXPECT_EQ(batch_.refused[0].reason, FinishReason::kShutdown);
  EXPECT_EQ(Rejected(RejectReason::kDraining), 2u);
}

TEST_F(IntakeTest, DrainingAnswersWaitingJobsAtOnceAndTakesNoMore) {
  ASSERT_TRUE(intake_->Post(Job("small", 1)).ok());
  ASSERT_TRUE(intake_->Post(Job("large", 1 << 20)).ok());
  intake_->StartDraining();
  EXPECT_THAT(done_, ElementsAre("small UNAVAILABLE", "large UNAVAILABLE"));
  EXPECT_EQ(GetErrorInfo(last_).reason, "DRAINING");
  EXPECT_GE(GetErrorInfo(last_).retry_delay_ms, 0);
  EXPECT_EQ(GetErrorInfo(intake_->Post(Job("late", 1))).reason, "DRAINING");
  intake_->Stop();
  EXPECT_EQ(done_.size(), 2u);
}

TEST_F(IntakeTest, StopRunsNoMoreThanTheJobInProgress) {
  absl::Notification started, proceed;
  IntakeJob first = Job("", 1 << 20);
  first.run = [&](const absl::Status& end) {
    started.Notify();
    proceed.WaitForNotification();
    done_.push_back(end.ok() ? "first OK" : "first not");
  };
  ASSERT_TRUE(intake_->Post(std::move(first)).ok());
  ASSERT_TRUE(intake_->Post(Job("second", 1 << 20)).ok());
  intake_->Start();
  started.WaitForNotification();
  intake_->StartDraining();
  EXPECT_THAT(done_, ElementsAre("second UNAVAILABLE"));
  proceed.Notify();
  intake_->Stop();
  EXPECT_THAT(done_, ElementsAre("second UNAVAILABLE", "first OK"));
}

TEST_F(IntakeTest, ADeadJobIsNotRun) {
  IntakeJob job = Job("cancelled", 1);
  const auto flag = std::make_shared<std::atomic<bool>>(false);
  job.cancelled = flag;
  ASSERT_TRUE(intake_->Post(std::move(job)).ok());
  flag->store(true);
  job = Job("late", 1);
  job.deadline = AddNanos(clock_.Now(), 1000);
  ASSERT_TRUE(intake_->Post(std::move(job)).ok());
  clock_.AdvanceMillis(1);
  RunAll();
  EXPECT_THAT(done_, ElementsAre("cancelled CANCELLED", "late DEADLINE_EXCEEDED"));
  EXPECT_EQ(GetErrorInfo(last_).reason, "DEADLINE");
}

TEST_F(IntakeTest, SmallItemsGoBeforeLargeOnesAndLargeOnesAdvance) {
  Make({100, 8}, 128);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(intake_->Post(Job("L", 1 << 20)).ok());
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(intake_->Post(Job("s", 1)).ok());
  while (done_.empty() || !done_.back().starts_with("L")) ASSERT_TRUE(intake_->RunOne());
  EXPECT_EQ(done_.size(), 41u) << "all that were there when it was free";
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(intake_->Post(Job("s", 1)).ok());
  ASSERT_TRUE(intake_->RunOne());
  ASSERT_TRUE(intake_->Post(Job("hi", 1)).ok());  // came too late for this batch
  RunAll();
  const auto second = std::ranges::find(done_.begin() + 41, done_.end(), "L OK");
  EXPECT_EQ(second - done_.begin(), 81) << "large ones advance";
  EXPECT_EQ(*(second + 1), "hi OK") << "it waits for one large item at most";
}

TEST_F(IntakeTest, DeadLargeItemsTakeNoTurn) {
  Make({100, 8}, 128);
  const auto flag = std::make_shared<std::atomic<bool>>(true);
  for (int i = 0; i < 12; ++i) {
    IntakeJob job = Job("dead", 1 << 20);
    job.cancelled = flag;
    ASSERT_TRUE(intake_->Post(std::move(job)).ok());
  }
  ASSERT_TRUE(intake_->Post(Job("large", 1 << 20)).ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(intake_->Post(Job("s", 1)).ok());
  RunAll();
  EXPECT_EQ(std::ranges::find(done_, "s OK") - done_.begin(), 12);
  EXPECT_EQ(done_.back(), "large OK");
}

TEST_F(IntakeTest, APromptTooLongByItsBytesAloneIsNotEncoded) {
  const int before = tokenizer_.encodes();
  // The longest token has 12 bytes.
  const absl::Status status = Refused(Ask(std::string(1200, 'x'))).status;
  const ErrorInfo info = GetErrorInfo(status);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("at least 100 tokens"));
  EXPECT_EQ(tokenizer_.encodes(), before);
  EXPECT_EQ(info.reason, "PROMPT_TOO_LONG");
  EXPECT_THAT(info.metadata, ElementsAre(Pair("actual", "100"), Pair("limit", "99")));
  ValidRequest ask = Ask(std::string(1200, 'x'));
  ask.prompt.truncate_to_tokens = 5;
  EXPECT_EQ(Accepted(std::move(ask)).prompt.size(), 5u) << "truncation may make it fit";
}

TEST_F(IntakeTest, JobsAreBounded) {
  EXPECT_TRUE(intake_->Post(Job("a", 1)).ok());
  EXPECT_TRUE(intake_->Post(Job("b", 1 << 20)).ok());
  EXPECT_EQ(GetErrorInfo(intake_->Post(Job("c", 1))).reason, "QUEUE_FULL");
  EXPECT_TRUE(intake_->RunOne());
  EXPECT_TRUE(intake_->Post(Job("d", 1)).ok());
}

TEST_F(IntakeTest, CountsCallsThatValidationRefused) {
  intake_->CountRefused(InvalidField("sampling.top_p", "got 2, wanted at most 1"));
  intake_->CountRefused(absl::InternalError("no reason"));
  EXPECT_EQ(intake_->Stats().received, 2u);
  EXPECT_EQ(Rejected(RejectReason::kFieldInvalid), 1u);
  EXPECT_EQ(Rejected(RejectReason::kOther), 1u);
}

TEST(RetryDelay, IsTheTimeToPrefillWhatWaitsWithinBounds) {
  constexpr ServiceRates kRate{.prefill_tokens_per_second = 1000};
  EXPECT_EQ(RetryDelayMs(1000, kRate, 0.5), 1000);
  EXPECT_EQ(RetryDelayMs(1000, kRate, 0.0), 750);
  EXPECT_EQ(RetryDelayMs(0, kRate, 0.5), 50);
  EXPECT_EQ(RetryDelayMs(0, kRate, 0.0), 50);
  EXPECT_EQ(RetryDelayMs(int64_t{1} << 40, kRate, 0.99), 30'000);
  EXPECT_EQ(RetryDelayMs(1000, {}, 0.5), 1000) << "no rate yet";
}

TEST(RetryDelay, IsNotBeforeAPlaceBecomesFree) {
  constexpr ServiceRates kRates{.prefill_tokens_per_second = 1000, .ends_per_second = 0.25};
  EXPECT_EQ(RetryDelayMs(1000, kRates, 0.5), 4000);
  EXPECT_EQ(RetryDelayMs(9000, kRates, 0.5), 9000);
}

TEST(RejectReason, EveryReasonHasOneName) {
  for (size_t i = 0; i < kRejectReasons; ++i) {
    const auto reason = static_cast<RejectReason>(i);
    EXPECT_FALSE(RejectReasonName(reason).empty());
    EXPECT_EQ(RejectReasonOf(RejectReasonName(reason)), reason);
  }
  EXPECT_EQ(RejectReasonOf("something else"), RejectReason::kOther);
}

}  // namespace
}  // namespace quire
