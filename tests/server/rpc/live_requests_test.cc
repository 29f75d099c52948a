#include "server/rpc/live_requests.h"

#include "gtest/gtest.h"
#include "runtime/base/error_info.h"

namespace quire {
namespace {

TEST(LiveRequests, ATenantHasANameOnceAtATime) {
  LiveRequests live;
  EXPECT_TRUE(live.Add({"a", "job"}, RequestId{1}).ok());
  const absl::Status twice = live.Add({"a", "job"}, RequestId{2});
  EXPECT_EQ(twice.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(GetErrorInfo(twice).reason, "REQUEST_ID_LIVE");
  live.Remove({"a", "job"});
  EXPECT_TRUE(live.Add({"a", "job"}, RequestId{2}).ok());
}

TEST(LiveRequests, TenantsDoNotSeeEachOthers) {
  LiveRequests live;
  EXPECT_TRUE(live.Add({"a", "job"}, RequestId{1}).ok());
  EXPECT_TRUE(live.Add({"b", "job"}, RequestId{2}).ok());
  EXPECT_EQ(live.Find({"a", "job"}), RequestId{1});
  EXPECT_EQ(live.Find({"b", "job"}), RequestId{2});
  EXPECT_EQ(live.Find({"", "job"}), RequestId::kNone);
}

}  // namespace
}  // namespace quire
