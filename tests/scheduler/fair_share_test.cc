#include "scheduler/fair_share.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/scheduler/sequence_maker.h"

namespace quire {
namespace {

class FairShareTest : public testing::Test {
 protected:
  Sequence* Waiting(int32_t tenant) {
    Sequence& sequence = maker_.Make(next_++);
    requests_.push_back(std::make_unique<Request>(*sequence.request));
    requests_.back()->tenant = tenant;
    sequence.request = requests_.back().get();
    return &sequence;
  }
  SequenceMaker maker_;
  std::vector<std::unique_ptr<Request>> requests_;
  uint64_t next_ = 0;
  std::array<double, 2> weights_{1, 4};
  FairShare shares_{weights_};
};

TEST_F(FairShareTest, ChargesByWeight) {
  for (const int32_t tenant : {0, 1, 2}) {
    shares_.ChargePrompt(tenant, 100);
    shares_.ChargeOutput(tenant);
  }
  EXPECT_EQ(shares_.charged(0), 100 + FairShare::kOutputCost);
  EXPECT_EQ(shares_.charged(1), (100 + FairShare::kOutputCost) / 4);
  EXPECT_EQ(shares_.charged(2), shares_.charged(0));
}

TEST_F(FairShareTest, ATenantThatComesBackBeginsAtTheLeastOfThoseThatWait) {
  shares_.ChargePrompt(0, 100);
  shares_.ChargePrompt(2, 300);
  Sequence* const waiting[] = {Waiting(0), Waiting(2)};
  shares_.Arrive(3, waiting);
  EXPECT_EQ(shares_.charged(3), 100);
  shares_.ChargePrompt(4, 500);
  shares_.Arrive(4, waiting);
  EXPECT_EQ(shares_.charged(4), 500) << "what it had is not forgotten";
}

TEST_F(FairShareTest, ATenantThatWaitsAlreadyIsNotLifted) {
  shares_.ChargePrompt(2, 300);
  Sequence* const waiting[] = {Waiting(0), Waiting(2)};
  shares_.Arrive(0, waiting);
  EXPECT_EQ(shares_.charged(0), 0);
}

TEST_F(FairShareTest, AnEmptyQueueLiftsToWhereServiceHadCome) {
  shares_.ChargePrompt(0, 100);
  shares_.ChargePrompt(2, 700);
  shares_.Arrive(3, {});
  EXPECT_EQ(shares_.charged(3), 700);
}

TEST_F(FairShareTest, CountsServedTokens) {
  shares_.CountServed(2, 10);
  shares_.CountServed(2, 1);
  EXPECT_EQ(shares_.tenants()[2].served_tokens, 11);
  EXPECT_EQ(shares_.tenants()[0].served_tokens, 0);
}

}  // namespace
}  // namespace quire
