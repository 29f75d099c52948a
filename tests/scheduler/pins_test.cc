#include "scheduler/pins.h"

#include <gtest/gtest.h>

#include "tests/scheduler/sequence_maker.h"

namespace quire {
namespace {

class PinsTest : public testing::Test {
 protected:
  // Prompts of 60 and 4 output tokens: at most one block each, longer ones two.
  SequenceMaker maker_;
  Sequence& first_ = maker_.Make(1, 60);
  Sequence& second_ = maker_.Make(2, 60);
  Sequence& third_ = maker_.Make(3, 60);
  Sequence& last_ = maker_.Make(4, 100);
};

TEST_F(PinsTest, WithoutPinsAnythingGoes) {
  Sequence* const running[] = {&first_, &second_, &third_};
  EXPECT_TRUE(PinsHold(running, {}, last_, 1));
}

TEST_F(PinsTest, APinnedHeadMustFitBesideAllThatOutrankIt) {
  Sequence* const running[] = {&first_, &second_};
  last_.setbacks.pinned = true;
  EXPECT_TRUE(PinsHold(running, {}, last_, 4));
  EXPECT_FALSE(PinsHold(running, {}, last_, 3));
}

TEST_F(PinsTest, WhoIsLeavingDoesNotCount) {
  Sequence* const running[] = {&first_, &second_};
  Sequence* const leaving[] = {&first_};
  last_.setbacks.pinned = true;
  EXPECT_TRUE(PinsHold(running, leaving, last_, 3));
}

TEST_F(PinsTest, WhoRanksBelowCanAlwaysGiveWay) {
  Sequence* const running[] = {&second_, &third_};
  first_.setbacks.pinned = true;
  EXPECT_TRUE(PinsHold(running, {}, first_, 1));
  first_.setbacks.pinned = false;
  second_.setbacks.pinned = true;
  EXPECT_TRUE(PinsHold(running, {}, last_, 2)) << "a victim of the pinned one";
}

TEST_F(PinsTest, AHeadThatOutranksAPinnedOneMustFitBesideIt) {
  Sequence* const running[] = {&second_, &third_};
  third_.setbacks.pinned = true;
  last_.level = 1;
  EXPECT_TRUE(PinsHold(running, {}, last_, 4));
  EXPECT_FALSE(PinsHold(running, {}, last_, 3));
}

TEST_F(PinsTest, AloneItAlwaysFits) {
  last_.setbacks.pinned = true;
  EXPECT_TRUE(PinsHold({}, {}, last_, 1));
}

}  // namespace
}  // namespace quire
