#include "scheduler/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/testing/requests.h"

namespace quire {
namespace {

constexpr CacheScope kScope{.domain = {.hi = 1, .lo = 2}, .kv = {}};

class PrefixIndexTest : public testing::TestWithParam<int32_t> {
 protected:
  std::span<const TokenId> Tokens(int32_t begin, int32_t count) {
    return std::span<const TokenId>(tokens_).subspan(static_cast<size_t>(begin),
                                                     static_cast<size_t>(count));
  }
  // Publishes tokens_[begin, +count) behind `parent` in a new block, which nobody holds then.
  BlockId Publish(BlockId parent, int32_t begin, int32_t count) {
    const BlockId block = pool_.Allocate();
    const BlockId found = index_.Publish(parent, kScope, Tokens(begin, count), block);
    pool_.Release(block);
    index_.CheckInvariants();
    pool_.CheckInvariants();
    return found;
  }
  PrefixMatch Find(std::span<const TokenId> tokens, const CacheScope& scope = kScope) {
    return index_.Find(scope, tokens, storage_);
  }

  BlockPool pool_{16};
  PrefixIndex index_{pool_, {.seed = 7, .hash_bits = GetParam()}};
  std::vector<TokenId> tokens_ = RandomTokens(1, 640);
  std::vector<BlockId> storage_ = std::vector<BlockId>(16);
};

// One bit: every second node collides.
INSTANTIATE_TEST_SUITE_P(HashBits, PrefixIndexTest, testing::Values(64, 8, 1));

TEST_P(PrefixIndexTest, FindsWholeBlocksThenTheLongestRun) {
  const BlockId a = Publish(BlockId::kNone, 0, 64), b = Publish(a, 64, 64);
  const BlockId c = Publish(b, 128, 20);
  const PrefixMatch match = Find(Tokens(0, 200));
  ASSERT_EQ(match.full.size(), 2u);
  EXPECT_EQ(match.full[0], a);
  EXPECT_EQ(match.full[1], b);
  EXPECT_EQ(match.partial, c);
  EXPECT_EQ(match.partial_tokens, 20);
  EXPECT_EQ(match.tokens(), 148);
  EXPECT_EQ(Find(Tokens(0, 140)).partial_tokens, 12);
}

TEST_P(PrefixIndexTest, TheLeadingTokensOfAFullBlockAreARunToo) {
  const BlockId a = Publish(BlockId::kNone, 0, 64);
  std::vector<TokenId> other(Tokens(0, 64).begin(), Tokens(0, 64).end());
  other[40] = TokenId{300};
  const PrefixMatch match = Find(other);
  EXPECT_TRUE(match.full.empty());
  EXPECT_EQ(match.partial, a);
  EXPECT_EQ(match.partial_tokens, 40);
  EXPECT_EQ(Find(Tokens(0, 63)).partial_tokens, 63) << "63 of 64 are a part";
}

TEST_P(PrefixIndexTest, AnotherScopeFindsNothing) {
  Publish(BlockId::kNone, 0, 64);
  for (const CacheScope& scope :
       {CacheScope{.domain = {.hi = 1, .lo = 3}, .kv = {}},
        CacheScope{.domain = {.hi = 2, .lo = 2}, .kv = {}},
        CacheScope{.domain = kScope.domain, .kv = {.window_tokens = 64}},
        CacheScope{.domain = kScope.domain, .kv = {.window_tokens = 0, .sink_tokens = 4}}}) {
    EXPECT_EQ(Find(Tokens(0, 64), scope).tokens(), 0);
  }
}

TEST_P(PrefixIndexTest, TheSameTokensBehindAnotherBeginningAreAnotherNode) {
  const BlockId a = Publish(BlockId::kNone, 0, 64), b = Publish(BlockId::kNone, 64, 64);
  const BlockId behind_a = Publish(a, 128, 64);
  std::vector<TokenId> through_b(Tokens(64, 128).begin(), Tokens(64, 128).end());
  EXPECT_EQ(Find(through_b).full.size(), 1u);
  const BlockId behind_b = Publish(b, 128, 64);
  EXPECT_NE(behind_a, behind_b);
  EXPECT_EQ(Find(through_b).full[1], behind_b);
}

TEST_P(PrefixIndexTest, TheFirstOfEqualBlocksStaysTheOneThatIsFound) {
  const BlockId a = Publish(BlockId::kNone, 0, 64);
  EXPECT_EQ(Publish(BlockId::kNone, 0, 64), a);
  const BlockId tail = Publish(a, 64, 20);
  EXPECT_EQ(Find(Tokens(0, 128)).partial, tail);
  EXPECT_EQ(Publish(a, 64, 10), BlockId::kNone) << "covered by the 20";
  EXPECT_EQ(index_.size(), 2);
  EXPECT_EQ(pool_.num_cached(), 2);
}

TEST_P(PrefixIndexTest, WithdrawingABlockTakesWhatFollowsItToo) {
  const BlockId a = Publish(BlockId::kNone, 0, 64), b = Publish(a, 64, 64);
  Publish(b, 128, 64);
  Publish(b, 192, 9);
  Publish(a, 256, 64);
  const BlockId other = Publish(BlockId::kNone, 320, 64);
  index_.Withdraw(b);
  index_.CheckInvariants();
  EXPECT_EQ(index_.size(), 3);
  EXPECT_EQ(Find(Tokens(0, 192)).full.size(), 1u);
  index_.Withdraw(b);  // nothing to do
  index_.Withdraw(a);
  index_.CheckInvariants();
  EXPECT_EQ(index_.size(), 1);
  EXPECT_EQ(Find(Tokens(320, 64)).full[0], other);
  EXPECT_EQ(pool_.num_free(), 15);
}

TEST_P(PrefixIndexTest, AReusedBlockKeepsNothingOfItsPast) {
  const BlockId a = Publish(BlockId::kNone, 0, 64);
  Publish(a, 64, 64);
  index_.Withdraw(a);
  EXPECT_EQ(index_.Publish(BlockId::kNone, kScope, Tokens(320, 64), a), a);
  index_.CheckInvariants();
  EXPECT_EQ(Find(Tokens(0, 128)).tokens(), 0);
  std::vector<TokenId> behind(Tokens(320, 64).begin(), Tokens(320, 64).end());
  behind.insert(behind.end(), Tokens(64, 64).begin(), Tokens(64, 64).end());
  EXPECT_EQ(Find(behind).tokens(), 64);
}

TEST_P(PrefixIndexTest, RandomChainsAreFoundAsANaiveSearchFindsThem) {
  TestRandom random(static_cast<uint64_t>(GetParam()));
  std::vector<std::vector<TokenId>> known;  // beginnings that are in the index
  const auto token = [&] { return TokenId{random.Between(0, 1)}; };
  for (int round = 0; round < 400; ++round) {
    std::vector<TokenId> tokens;
    if (!known.empty()) tokens = known[random.Next() % known.size()];
    tokens.resize(tokens.size() - tokens.size() % 64 + static_cast<size_t>(random.Between(1, 64)));
    for (TokenId& t : tokens) t = random.Chance(98) ? t : token();
    int32_t best = 0;
    for (const std::vector<TokenId>& other : known) {
      const size_t most = std::min(tokens.size(), other.size());
      const auto ends = std::mismatch(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(most),
                                      other.begin());
      const auto common = static_cast<int32_t>(ends.first - tokens.begin());
      best = std::max(best, common);
    }
    const PrefixMatch match = Find(tokens);
    // A whole block that is last is a run of 63 if its node is not whole, and never less.
    ASSERT_GE(match.tokens(), best - (best % 64 == 0));
    ASSERT_LE(match.tokens(), best);
    const auto whole = static_cast<size_t>(match.full.size());
    if (pool_.num_free() == 0 || whole * 64 == tokens.size()) continue;
    const size_t count = std::min<size_t>(64, tokens.size() - whole * 64);
    const BlockId parent = whole == 0 ? BlockId::kNone : match.full[whole - 1];
    const BlockId block = pool_.Allocate();
    if (index_.Publish(parent, kScope, std::span(tokens).subspan(whole * 64, count), block) ==
        block) {
      tokens.resize(whole * 64 + count);
      known.push_back(tokens);
    }
    pool_.Release(block);
    index_.CheckInvariants();
  }
  EXPECT_GT(index_.size(), 10);
}

TEST(PrefixIndexDeathTest, RefusesAChildOfAPartialBlockAndATwin) {
  BlockPool pool(4);
  PrefixIndex index(pool, {});
  const std::vector<TokenId> tokens = RandomTokens(1, 64);
  index.Publish(BlockId::kNone, kScope, std::span(tokens).first(9), BlockId{0});
  EXPECT_DEATH(index.Publish(BlockId{0}, kScope, tokens, BlockId{1}), "only full blocks");
  EXPECT_DEATH(index.Publish(BlockId::kNone, kScope, tokens, BlockId{0}), "twice");
}

}  // namespace
}  // namespace quire
