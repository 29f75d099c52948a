#include "scheduler/admission_order.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/scheduler/sequence_maker.h"

namespace quire {
namespace {

struct Spec {
  int32_t priority = 0, tenant = 0;
  int64_t arrival = 0;
};

class AdmissionOrderTest : public testing::Test {
 protected:
  Sequence& Add(const Spec& spec) {
    Sequence& sequence = maker_.Make(waiting_.size());
    requests_.push_back(std::make_unique<Request>(*sequence.request));
    requests_.back()->tenant = spec.tenant;
    requests_.back()->arrival = MonotonicTime{spec.arrival};
    sequence.request = requests_.back().get();
    sequence.priority = spec.priority;
    waiting_.push_back(&sequence);
    return sequence;
  }
  // Arrival numbers in the order of their turns at time `now`.
  std::string Turns(int64_t now = 0) {
    AdmissionOrder order(policy_, shares_, 8);
    order.Begin(waiting_, MonotonicTime{now});
    std::string turns;
    while (Sequence* sequence = order.Next()) turns += std::to_string(sequence->order);
    return turns;
  }
  QueuePolicy policy_{.ageing_ns = 100, .tenant_weights = {}};
  FairShare shares_{{}};
  SequenceMaker maker_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<Sequence*> waiting_;
};

TEST_F(AdmissionOrderTest, HigherPriorityGoesFirstThenArrival) {
  Add({.priority = 0});
  Add({.priority = 2});
  Add({.priority = -1});
  Add({.priority = 2});
  EXPECT_EQ(Turns(), "1302");
}

TEST_F(AdmissionOrderTest, AgeLiftsOverHigherPriority) {
  Add({.priority = 0, .arrival = 0});
  Add({.priority = 3, .arrival = 250});
  EXPECT_EQ(Turns(250), "10");
  EXPECT_EQ(Turns(299), "10");
  EXPECT_EQ(Turns(300), "01") << "level 3, and the earlier arrival";
}

TEST_F(AdmissionOrderTest, AfterTwentyAgeingTimesNobodyNewerGoesFirst) {
  Add({.priority = kMinPriority, .arrival = 0});
  Add({.priority = kMaxPriority, .arrival = 1999});
  EXPECT_EQ(Turns(1999), "10");
  EXPECT_EQ(Turns(2000), "01");
}

TEST_F(AdmissionOrderTest, OfEqualsTheTenantThatHadLeastGoesFirst) {
  Add({.tenant = 1});
  Add({.tenant = 2});
  Add({.tenant = 1});
  shares_.ChargePrompt(1, 10);
  EXPECT_EQ(Turns(), "102");
}

TEST_F(AdmissionOrderTest, AnOldBacklogDoesNotShutOutAnotherTenant) {
  for (int i = 0; i < 3; ++i) Add({.tenant = 1, .arrival = i});
  Add({.tenant = 2, .arrival = 100'000});
  shares_.ChargePrompt(1, 10);
  EXPECT_EQ(Turns(100'000), "3012");
}

TEST_F(AdmissionOrderTest, SharesAreReadAtEachTurn) {
  Add({.tenant = 1});
  Add({.tenant = 1});
  Add({.tenant = 2});
  AdmissionOrder order(policy_, shares_, 8);
  order.Begin(waiting_, MonotonicTime{0});
  EXPECT_EQ(order.Next()->order, 0u);
  shares_.ChargePrompt(1, 10);
  EXPECT_EQ(order.Next()->order, 2u);
  EXPECT_EQ(order.Next()->order, 1u);
  EXPECT_EQ(order.Next(), nullptr);
}

TEST_F(AdmissionOrderTest, ThoseOwedATurnGoBeforeTheirEquals) {
  Add({.tenant = 1});
  Add({.tenant = 2});
  Add({.tenant = 1}).setbacks.bypasses = policy_.max_bypasses;
  Add({.tenant = 1}).started = true;
  Add({.priority = 1});
  shares_.ChargePrompt(1, 10);
  EXPECT_EQ(Turns(), "42310");
}

TEST_F(AdmissionOrderTest, PausedOnesHaveNoTurn) {
  Add({});
  Add({.priority = 5}).paused = true;
  Add({.priority = -2, .arrival = -1'000'000});
  EXPECT_EQ(Turns(), "02");
}

TEST_F(AdmissionOrderTest, FirstComeFirstServedKnowsOnlyArrival) {
  policy_.fcfs = true;
  Add({.priority = 0, .tenant = 1});
  Add({.priority = 2, .tenant = 2});
  Add({.priority = 9}).started = true;
  shares_.ChargePrompt(1, 10);
  EXPECT_EQ(Turns(), "012");
}

}  // namespace
}  // namespace quire
