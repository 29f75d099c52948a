#include "server/cli/bench_runner.h"

#include <array>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(QuantileOf, IsAnObservationAndNeverAbove) {
  constexpr std::array<int64_t, 4> kSorted = {10, 20, 30, 40};
  EXPECT_EQ(QuantileOf(kSorted, 0), 10);
  EXPECT_EQ(QuantileOf(kSorted, 0.5), 20);
  EXPECT_EQ(QuantileOf(kSorted, 0.99), 30);
  EXPECT_EQ(QuantileOf(kSorted, 1), 40);
  EXPECT_EQ(QuantileOf(std::array<int64_t, 1>{7}, 0.99), 7);
}

TEST(RandomTokens, ContinueWhatIsThereWithinTheVocabulary) {
  const auto draw = [](uint64_t seed) {
    std::vector<TokenId> tokens = {TokenId{500}};
    RandomTokens random(10, seed);
    random.FillTo(40, &tokens);
    random.FillTo(20, &tokens);  // there are more already
    return tokens;
  };
  const std::vector<TokenId> tokens = draw(1);
  ASSERT_EQ(tokens.size(), 40u);
  EXPECT_EQ(tokens[0], TokenId{500});
  for (size_t i = 1; i < tokens.size(); ++i) EXPECT_LT(static_cast<int32_t>(tokens[i]), 10);
  EXPECT_EQ(draw(1), tokens);
  EXPECT_NE(draw(2), tokens);
}

}  // namespace
}  // namespace quire
