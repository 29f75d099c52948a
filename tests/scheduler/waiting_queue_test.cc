#include "scheduler/waiting_queue.h"

#include <gtest/gtest.h>

#include "tests/scheduler/sequence_maker.h"

namespace quire {
namespace {

TEST(WaitingQueue, KeepsArrivalOrderWhateverTheOrderOfInsertion) {
  SequenceMaker maker;
  WaitingQueue queue(4);
  Sequence &third = maker.Make(3), &first = maker.Make(1), &second = maker.Make(2);
  queue.Insert(third);
  queue.Insert(first);
  queue.Insert(second);
  ASSERT_EQ(queue.size(), 3);
  EXPECT_EQ(queue.items()[0], &first);
  EXPECT_EQ(queue.items()[1], &second);
  EXPECT_EQ(queue.items()[2], &third);
  queue.Remove(second);
  EXPECT_EQ(queue.items()[1], &third);
}

TEST(WaitingQueue, CountsTokensThatWait) {
  SequenceMaker maker;
  WaitingQueue queue(4);
  Sequence &a = maker.Make(1, 10), &b = maker.Make(2, 5);
  queue.Insert(a);
  queue.Insert(b);
  EXPECT_EQ(queue.tokens(), 15);
  queue.Remove(a);
  EXPECT_EQ(queue.tokens(), 5);
}

TEST(WaitingQueueDeathTest, RefusesToRemoveWhatIsNotThere) {
  SequenceMaker maker;
  WaitingQueue queue(4);
  EXPECT_DEATH(queue.Remove(maker.Make(1)), "");
}

}  // namespace
}  // namespace quire
