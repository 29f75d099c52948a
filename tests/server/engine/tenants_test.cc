#include "server/engine/tenants.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "server/engine/cache_domains.h"

namespace quire {
namespace {

TEST(Tenants, KnownNamesComeFirstAndNamesKeepTheirIndex) {
  Tenants tenants({"gold", "silver"});
  EXPECT_EQ(tenants.Index(""), 0);
  EXPECT_EQ(tenants.Index("silver"), 2);
  EXPECT_EQ(tenants.Index("new"), 3);
  EXPECT_EQ(tenants.Index("newer"), 4);
  EXPECT_EQ(tenants.Index("new"), 3);
  EXPECT_EQ(tenants.Index("gold"), 1);
}

TEST(Tenants, NamesThatComeTooLateShareTheLastIndex) {
  Tenants tenants;
  std::set<int32_t> indices;
  for (int i = 0; i < 254; ++i) indices.insert(tenants.Index("t" + std::to_string(i)));
  EXPECT_EQ(indices.size(), 254u);
  EXPECT_EQ(*indices.rbegin(), Tenants::kOther - 1);
  EXPECT_EQ(tenants.Index("late"), Tenants::kOther);
  EXPECT_EQ(tenants.Index("later"), Tenants::kOther);
  EXPECT_EQ(tenants.Index("t0"), 1) << "who came early keeps its own";
}

TEST(Tenants, NamesAreShortAndPlain) {
  EXPECT_TRUE(IsTenantName("a"));
  EXPECT_TRUE(IsTenantName("team_7-b"));
  EXPECT_TRUE(IsTenantName(std::string(64, 'z')));
  for (const std::string& bad :
       {std::string(), std::string(65, 'z'), std::string("A"), std::string("a b"),
        std::string("a/b"), std::string("a\0b", 3), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(IsTenantName(bad)) << bad;
  }
}

TEST(CacheDomains, DifferWheneverTenantSaltOrPolicyDiffers) {
  const CacheDomains domains(CacheDomains::Key{1, 2, 3});
  const KvPolicy full, window{.window_tokens = 128, .sink_tokens = 4},
      wider{.window_tokens = 192, .sink_tokens = 4}, sinks{.window_tokens = 128, .sink_tokens = 5};
  std::set<std::pair<uint64_t, uint64_t>> seen;
  int made = 0;
  for (const char* tenant : {"", "a", "ab", "abc"}) {
    for (const char* salt : {"", "a", "b", "bc", "c"}) {
      for (const KvPolicy& kv : {full, window, wider, sinks}) {
        const CacheDomain domain = domains.Of(tenant, salt, kv);
        EXPECT_EQ(domain, domains.Of(tenant, salt, kv));
        seen.emplace(domain.hi, domain.lo);
        ++made;
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(made)) << "no border between parts can be moved";
}

TEST(CacheDomains, AreNamedByAKeyOfTheProcess) {
  const CacheDomains one, other;
  EXPECT_NE(one.Of("a", "", {}), other.Of("a", "", {}));
}

}  // namespace
}  // namespace quire
