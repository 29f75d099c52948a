#include "server/engine/inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

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
  EXPECT_TRUE(inbox.Reserve(kOne));
  EXPECT_TRUE(inbox.Reserve(kTwo));
  EXPECT_FALSE(inbox.Reserve(kThree));
  inbox.Release(kOne);
  EXPECT_TRUE(inbox.Reserve(kThree));
  EXPECT_EQ(inbox.live(), 2);
}

TEST(Inbox, DeliversSubmitsInOrder) {
  Inbox inbox(4);
  for (const RequestId id : {kOne, kTwo, kThree}) {
    ASSERT_TRUE(inbox.Reserve(id));
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
  ASSERT_TRUE(inbox.Reserve(kOne));
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
  ASSERT_TRUE(inbox.Reserve(kOne));
  inbox.Submit(Make(kOne));
  inbox.Abort(kOne, FinishReason::kAborted);
  inbox.Abort(kOne, FinishReason::kCancelled);
  EXPECT_THAT(Drain(inbox).aborts, ElementsAre(Pair(kOne, FinishReason::kAborted)));
  inbox.Abort(kOne, FinishReason::kCancelled);
  EXPECT_THAT(Drain(inbox).aborts, IsEmpty());
}

TEST(Inbox, MessagesForEndedRequestsAreDropped) {
  Inbox inbox(4);
  ASSERT_TRUE(inbox.Reserve(kOne));
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
  ASSERT_TRUE(inbox.Reserve(kOne));
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
    ASSERT_TRUE(inbox.Reserve(id));
    inbox.Submit(Make(id));
  }
  ASSERT_TRUE(inbox.Reserve(kThree));  // still in intake
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
  ASSERT_TRUE(inbox.Reserve(kOne));
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
