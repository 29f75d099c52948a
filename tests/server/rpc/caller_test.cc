#include "server/rpc/caller.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_info.h"

namespace quire {
namespace {

using Pairs = std::vector<std::pair<const char*, const char*>>;

absl::StatusOr<Caller> Read(const Pairs& pairs) {
  CallMetadata metadata;
  for (const auto& [key, value] : pairs) metadata.emplace(key, value);
  return ReadCaller(metadata);
}

std::string Complaint(const Pairs& pairs) {
  const ErrorInfo info = GetErrorInfo(Read(pairs).status());
  return info.reason + (info.violations.empty() ? "" : " " + info.violations[0].field);
}

TEST(Caller, IsTheDefaultTenantWithoutAPriorityIfTheCallSaysNothing) {
  const auto caller = Read({{"user-agent", "x"}});
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller->tenant, "");
  EXPECT_EQ(caller->priority, std::nullopt);
}

TEST(Caller, IsWhatTheMetadataSays) {
  const auto caller = Read({{"x-quire-tenant", "team-7_b"}, {"x-quire-priority", "-10"}});
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ(caller->tenant, "team-7_b");
  EXPECT_EQ(caller->priority, -10);
}

TEST(Caller, RefusesWhatIsNoTenantAndNoPriority) {
  const std::string longest(65, 'a');
  for (const char* tenant : {"", "A", "a b", "a/b", longest.c_str()}) {
    EXPECT_EQ(Complaint({{"x-quire-tenant", tenant}}), "FIELD_INVALID x-quire-tenant") << tenant;
  }
  for (const char* priority : {"", "high", "11", "-11", "1.5", "0x1", "99999999999"}) {
    EXPECT_EQ(Complaint({{"x-quire-priority", priority}}), "FIELD_INVALID x-quire-priority")
        << priority;
  }
}

TEST(Caller, RefusesAKeyThatIsGivenTwice) {
  EXPECT_EQ(Complaint({{"x-quire-tenant", "a"}, {"x-quire-tenant", "a"}}),
            "FIELD_CONFLICT x-quire-tenant");
  EXPECT_EQ(Complaint({{"x-quire-priority", "1"}, {"x-quire-priority", "2"}}),
            "FIELD_CONFLICT x-quire-priority");
}

TEST(Caller, ListsEverythingThatIsWrong) {
  const ErrorInfo info =
      GetErrorInfo(Read({{"x-quire-tenant", "A"}, {"x-quire-priority", "x"}}).status());
  EXPECT_EQ(info.violations.size(), 2u);
}

}  // namespace
}  // namespace quire
