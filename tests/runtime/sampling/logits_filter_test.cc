#include "runtime/sampling/logits_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "tests/testing/mix.h"

namespace quire {
namespace {

std::vector<Candidate> RandomCandidates(uint64_t seed, int32_t count, int32_t distinct) {
  TestRandom random(seed);
  std::vector<Candidate> all;
  for (int32_t i = 0; i < count; ++i) {
    const float logit = -0.25f * static_cast<float>(random.Between(0, distinct));
    all.push_back({logit, i, std::exp(logit)});
  }
  return all;
}

std::set<int32_t> Ids(Candidates kept) {
  std::set<int32_t> ids;
  for (const Candidate& c : kept) ids.insert(c.id);
  return ids;
}

std::set<int32_t> KeptBy(std::vector<Candidate> all, const Candidate& cut) {
  const Candidates kept = KeepUpTo(all, cut);
  EXPECT_TRUE(std::ranges::is_sorted(kept, {}, &Candidate::id));
  return Ids(kept);
}

std::set<int32_t> SortedPrefix(std::vector<Candidate> all, size_t count) {
  std::ranges::sort(all, Better);
  return Ids(Candidates(all).first(count));
}

TEST(LogitsFilter, KeepsTheBestWithTiesToTheLowerId) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<Candidate> all = RandomCandidates(seed, 200, 6);
    for (const int32_t k : {1, 2, 40, 199, 200}) {
      std::vector<Candidate> copy = all;
      EXPECT_EQ(KeptBy(all, RankCut(copy, k)), SortedPrefix(all, static_cast<size_t>(k)));
    }
  }
}

TEST(LogitsFilter, KeepsTheSmallestSetThatReachesAMass) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (const int32_t distinct : {1, 8, 100}) {
      const std::vector<Candidate> all =
          RandomCandidates(seed, seed % 2 == 0 ? 50 : 3000, distinct);
      std::vector<Candidate> sorted = all;
      std::ranges::sort(sorted, Better);
      const double total = TotalMass(sorted);
      for (const double share : {0.01, 0.5, 0.95, 0.999}) {
        // Off the sums that a set can have, so that rounding decides nothing.
        const double mass = share * total * (1 + 1e-9);
        size_t count = 0;
        for (double sum = 0; count < sorted.size() && sum < mass; ++count)
          sum += sorted[count].mass;
        std::vector<Candidate> copy = all;
        EXPECT_EQ(KeptBy(all, MassCut(copy, mass)), SortedPrefix(all, count))
            << seed << " " << distinct << " " << share;
      }
    }
  }
}

TEST(LogitsFilter, KeepsAllWhenTheyDoNotReachTheMass) {
  for (const int32_t count : {1, 10, 1000}) {
    const std::vector<Candidate> all = RandomCandidates(1, count, 3);
    std::vector<Candidate> copy = all;
    EXPECT_EQ(KeptBy(all, MassCut(copy, 1e9)).size(), static_cast<size_t>(count));
  }
}

TEST(LogitsFilter, KeepsThoseWithAtLeastAShareOfTheBest) {
  std::vector<Candidate> all = {{0, 3, 1.0f}, {0, 1, 0.25f}, {0, 2, 0.2f}};
  EXPECT_EQ(Ids(KeepAtLeast(all, 0.25f)), (std::set<int32_t>{1, 3}));
}

TEST(LogitsFilter, DrawsByTheInverseOfTheRunningSum) {
  std::vector<Candidate> all = {{0, 10, 1.0f}, {0, 11, 0.0f}, {0, 12, 2.0f}, {0, 13, 1.0f}};
  EXPECT_EQ(DrawFrom(all, 0.0), TokenId{10});
  EXPECT_EQ(DrawFrom(all, 0.2499), TokenId{10});
  EXPECT_EQ(DrawFrom(all, 0.25), TokenId{12});
  EXPECT_EQ(DrawFrom(all, 0.7499), TokenId{12});
  EXPECT_EQ(DrawFrom(all, 0.75), TokenId{13});
  EXPECT_EQ(DrawFrom(all, 1.0), TokenId{13});
}

}  // namespace
}  // namespace quire
