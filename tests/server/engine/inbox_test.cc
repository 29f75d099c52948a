#include "server/engine/inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace quire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr RequestId kOne{1}, kTwo{2}, kThree{3};

Request Make(RequestId id) {
  Request request;
  request.id = id;
  return request;
}

InboxMessages Drain(Inbox& inbox) {
  InboxMessages messages;
  inbox.Drain(messages);
  return messages;
}

TEST(Inbox, RefusesBeyondItsSlotsAndReusesThem) {
  Inbox inbox(2);
  EXPECT_EQ(inbox.Reserve(kOne), Room::kTaken);
  EXPECT_EQ(inbox.Reserve(kTwo), Room::kTaken);
  EXPECT_EQ(inbox.Reserve(kThree), Room::kNoSequences);
  inbox.Release(kOne);
  EXPECT_EQ(inbox.Reserve(kThree), Room::kTaken);
  EXPECT_EQ(inbox.live(), 2);
}

TEST(Inbox, CountsSequencesNotRequests) {
  Inbox inbox(8);
  EXPECT_EQ(inbox.Reserve(kOne, 5), Room::kTaken);
  EXPECT_EQ(inbox.Reserve(kTwo, 4), Room::kNoSequences);
  EXPECT_EQ(inbox.Reserve(kTwo, 3), Room::kTaken);
  EXPECT_EQ(inbox.reserved_sequences(), 8);
  inbox.Release(kOne);
  EXPECT_EQ(inbox.reserved_sequences(), 3);
  EXPECT_TRUE(inbox.Audit().ok()) << inbox.Audit();
}

TEST(Inbox, PromptTokensWaitUntilTheirRequestStartsOrEnds) {
  Inbox inbox(InboxLimits{.sequences = 8, .waiting_tokens = 100});
  ASSERT_EQ(inbox.Reserve(kOne), Room::kTaken);
  EXPECT_TRUE(inbox.ReserveTokens(kOne, 70));
  ASSERT_EQ(inbox.Reserve(kTwo, 1, 31), Room::kNoTokens);
  ASSERT_EQ(inbox.Reserve(kTwo, 1, 10), Room::kTaken);
  EXPECT_FALSE(inbox.ReserveTokens(kTwo, 31));
  EXPECT_TRUE(inbox.ReserveTokens(kTwo, 30));
  EXPECT_EQ(inbox.waiting_tokens(), 100);
  inbox.Submit(Make(kOne));
  Drain(inbox);
  const SequenceId first{kOne, 0};
  inbox.MarkStarted({&first, 1});
  inbox.MarkStarted({&first, 1});  // after a preemption: nothing is given back twice
  EXPECT_EQ(inbox.waiting_tokens(), 30);
  EXPECT_TRUE(inbox.Audit().ok()) << inbox.Audit();
  inbox.Release(kTwo);
  inbox.Finished({&kOne, 1});
  EXPECT_EQ(inbox.waiting_tokens(), 0);
  EXPECT_EQ(inbox.reserved_sequences(), 0);
  EXPECT_TRUE(inbox.Audit().ok()) << inbox.Audit();
}

TEST(Inbox, LetsOnePromptInThatIsBeyondTheLimitOfTokensAlone) {
  Inbox inbox(InboxLimits{.sequences = 8, .waiting_tokens = 100});
  EXPECT_EQ(inbox.Reserve(kOne, 1, 500), Room::kTaken);
  EXPECT_EQ(inbox.Reserve(kTwo), Room::kNoTokens);
  inbox.Release(kOne);
  EXPECT_EQ(inbox.Reserve(kTwo), Room::kTaken);
  EXPECT_TRUE(inbox.ReserveTokens(kTwo, 500)) << "nobody else waits";
}

TEST(Inbox, TheDoorNeverLetsInMoreThanItsLimitsWhoeverKnocks) {
  Inbox inbox(InboxLimits{.sequences = 16, .waiting_tokens = 1000});
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&inbox, t] {
      for (uint64_t i = 0; i < 2000; ++i) {
        const RequestId id{1 + t + 4 * i};
        if (inbox.Reserve(id, 1 + static_cast<int32_t>(i % 3), 1 + static_cast<int64_t>(i % 90)) !=
            Room::kTaken) {
          continue;
        }
        EXPECT_LE(inbox.reserved_sequences(), 16);
        EXPECT_LE(inbox.waiting_tokens(), 1000);
        inbox.Release(id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(inbox.Audit().ok()) << inbox.Audit();
  EXPECT_EQ(inbox.reserved_sequences() + inbox.waiting_tokens(), 0);
}

TEST(Inbox, DeliversTheEndOfAnOutputOnce) {
  Inbox inbox(4);
  ASSERT_EQ(inbox.Reserve(kOne, 3), Room::kTaken);
  inbox.Submit(Make(kOne));
  Drain(inbox);
  inbox.EndOutput({kOne, 2});
  inbox.EndOutput({kOne, 0});
  inbox.EndOutput({kTwo, 0});  // not live
  EXPECT_THAT(Drain(inbox).ends, ElementsAre(SequenceId{kOne, 0}, SequenceId{kOne, 2}));
  inbox.EndOutput({kOne, 0});
  EXPECT_THAT(Drain(inbox).ends, IsEmpty());
}

TEST(Inbox, DeliversSubmitsInOrder) {
  Inbox inbox(4);
  for (const RequestId id : {kOne, kTwo, kThree}) {
    ASSERT_EQ(inbox.Reserve(id), Room::kTaken);
    inbox.Submit(Make(id));
  }
  const InboxMessages messages = Drain(inbox);
  ASSERT_EQ(messages.submits.size(), 3u);
  EXPECT_EQ(messages.submits[0].id, kOne);
  EXPECT_EQ(messages.submits[2].id, kThree);
  EXPECT_THAT(Drain(inbox).submits, IsEmpty());
}

TEST(Inbox, AnAbortDuringIntakeFollowsTheSubmit) {
  Inbox inbox(4);
  ASSERT_EQ(inbox.Reserve(kOne), Room::kTaken);
  inbox.Abort(kOne, FinishReason::kCancelled);
  EXPECT_EQ(inbox.AbortReason(kOne), FinishReason::kCancelled);
  EXPECT_THAT(Drain(inbox).aborts, IsEmpty()) << "the engine does not know it yet";
  inbox.Submit(Make(kOne));
  const InboxMessages messages = Drain(inbox);
  EXPECT_EQ(messages.submits.size(), 1u);
  EXPECT_THAT(messages.aborts, ElementsAre(Pair(kOne, FinishReason::kCancelled)));
}

TEST(Inbox, TheFirstAbortCountsAndIsDeliveredOnce) {
  Inbox inbox(4);
  ASSERT_EQ(inbox.Reserve(kOne), Room::kTaken);
  inbox.Submit(Make(kOne));
  inbox.Abort(kOne, FinishReason::kAborted);
  inbox.Abort(kOne, FinishReason::kCancelled);
  EXPECT_THAT(Drain(inbox).aborts, ElementsAre(Pair(kOne, FinishReason::kAborted)));
  inbox.Abort(kOne, FinishReason::kCancelled);
  EXPECT_THAT(Drain(inbox).aborts, IsEmpty());
}

TEST(Inbox, MessagesForEndedRequestsAreDropped) {
  Inbox inbox(4);
  ASSERT_EQ(inbox.Reserve(kOne), Room::kTaken);
  inbox.Submit(Make(kOne));
  Drain(inbox);
  inbox.Abort(kOne, FinishReason::kCancelled);
  inbox.Finished(std::vector<RequestId>{kOne});
  EXPECT_THAT(Drain(inbox).aborts, IsEmpty());
  inbox.Abort(kOne, FinishReason::kCancelled);
  inbox.SetPaused(kTwo, true);
  const InboxMessages messages = Drain(inbox);
  EXPECT_THAT(messages.aborts, IsEmpty());
  EXPECT_THAT(messages.pauses, IsEmpty());
}

TEST(Inbox, OnlyTheLastStateOfAPauseIsDelivered) {
  Inbox inbox(4);
  ASSERT_EQ(inbox.Reserve(kOne), Room::kTaken);
  inbox.Submit(Make(kOne));
  Drain(inbox);
  inbox.SetPaused(kOne, true);
  inbox.SetPaused(kOne, false);
  EXPECT_THAT(Drain(inbox).pauses, IsEmpty());
  inbox.SetPaused(kOne, true);
  inbox.SetPaused(kOne, true);
  EXPECT_THAT(Drain(inbox).pauses, ElementsAre(Pair(kOne, true)));
}

TEST(Inbox, AbortNotStartedSparesWhatWasScheduled) {
  Inbox inbox(4);
  for (const RequestId id : {kOne, kTwo}) {
    ASSERT_EQ(inbox.Reserve(id), Room::kTaken);
    inbox.Submit(Make(id));
  }
  ASSERT_EQ(inbox.Reserve(kThree), Room::kTaken);  // still in intake
  Drain(inbox);
  inbox.MarkStarted(std::vector<SequenceId>{{kOne, 0}});
  inbox.AbortNotStarted(FinishReason::kShutdown);
  EXPECT_THAT(Drain(inbox).aborts, ElementsAre(Pair(kTwo, FinishReason::kShutdown)));
  EXPECT_EQ(inbox.AbortReason(kThree), FinishReason::kShutdown);
  EXPECT_EQ(inbox.AbortReason(kOne), FinishReason::kNone);
  inbox.AbortAll(FinishReason::kShutdown);
  EXPECT_THAT(Drain(inbox).aborts, ElementsAre(Pair(kOne, FinishReason::kShutdown)));
}

TEST(Inbox, WaitersSeeMessagesWakesAndEmptiness) {
  Inbox inbox(4);
  EXPECT_TRUE(inbox.WaitUntilEmpty(absl::ZeroDuration()));
  ASSERT_EQ(inbox.Reserve(kOne), Room::kTaken);
  EXPECT_FALSE(inbox.WaitUntilEmpty(absl::ZeroDuration()));
  std::thread other([&] { inbox.Submit(Make(kOne)); });
  inbox.WaitForWork(absl::InfiniteDuration());
  other.join();
  EXPECT_EQ(Drain(inbox).submits.size(), 1u);
  std::thread waker([&] { inbox.Wake(); });
  inbox.WaitForWork(absl::InfiniteDuration());
  waker.join();
  std::thread finisher([&] { inbox.Finished(std::vector<RequestId>{kOne}); });
  EXPECT_TRUE(inbox.WaitUntilEmpty(absl::InfiniteDuration()));
  finisher.join();
}

}  // namespace
}  // namespace quire
