#include "scheduler/running_set.h"

#include <gtest/gtest.h>

#include "tests/scheduler/sequence_maker.h"

namespace quire {
namespace {

class RunningSetTest : public testing::Test {
 protected:
  RunningSetTest() {
    for (Sequence* sequence : {&third_, &first_, &second_}) running_.Insert(*sequence);
  }
  SequenceMaker maker_;
  RunningSet running_{4};
  Sequence& first_ = maker_.Make(1);
  Sequence& second_ = maker_.Make(2);
  Sequence& third_ = maker_.Make(3);
};

TEST_F(RunningSetTest, TheVictimIsTheLatestArrival) {
  EXPECT_EQ(running_.VictimFor(first_), &third_);
  EXPECT_EQ(running_.VictimFor(second_), &third_);
}

TEST_F(RunningSetTest, AnOlderOneIsNeverAVictim) { EXPECT_EQ(running_.VictimFor(third_), nullptr); }

TEST_F(RunningSetTest, ALowerLevelGivesWayBeforeLaterArrival) {
  RunningSet running(4);
  first_.level = -1;
  third_.level = 1;
  for (Sequence* sequence : {&first_, &second_, &third_}) running.Insert(*sequence);
  EXPECT_EQ(running.items().front(), &third_);
  EXPECT_EQ(running.VictimFor(third_), &first_);
  EXPECT_EQ(running.VictimFor(first_), nullptr);
}

TEST_F(RunningSetTest, APinnedOneGivesWayOnlyToTheFirstAndLast) {
  third_.setbacks.pinned = true;
  EXPECT_EQ(running_.VictimFor(first_), &second_);
  EXPECT_EQ(running_.VictimFor(second_), nullptr);
  second_.setbacks.pinned = true;
  EXPECT_EQ(running_.VictimFor(first_), &third_) << "the first must advance";
}

TEST_F(RunningSetTest, APausedOneGoesFirstHoweverOld) {
  first_.paused = true;
  EXPECT_EQ(running_.VictimFor(second_), &first_);
  EXPECT_EQ(running_.VictimFor(third_), &first_);
  second_.paused = true;
  EXPECT_EQ(running_.VictimFor(third_), &second_);
  EXPECT_EQ(running_.num_active(), 1);
}

TEST_F(RunningSetTest, RemovalLeavesTheOthersInOrder) {
  running_.Remove(second_);
  EXPECT_FALSE(second_.running);
  ASSERT_EQ(running_.items().size(), 2u);
  EXPECT_EQ(running_.items()[0], &first_);
  EXPECT_EQ(running_.items()[1], &third_);
}

}  // namespace
}  // namespace quire
