#include "server/config/latency_buckets.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using testing::HasSubstr;

constexpr char kTtft[] = "time_to_first_token_seconds";
constexpr char kItl[] = "inter_token_latency_seconds";

std::vector<LatencyBuckets> Parse(const std::vector<std::string>& values) {
  std::vector<LatencyBuckets> all;
  EXPECT_TRUE(ParseLatencyBuckets(values, &all));
  return all;
}

TEST(ParseLatencyBuckets, TakesSeveralHistogramsInOneTextOrMany) {
  const std::vector<LatencyBuckets> wanted = {{.family = kTtft, .bounds = {0.1, 0.25, 30}},
                                              {.family = kItl, .bounds = {1e-3}}};
  EXPECT_EQ(Parse({absl::StrCat(kTtft, "=0.1,0.25,30"), absl::StrCat(kItl, "=0.001")}), wanted);
  EXPECT_EQ(Parse({absl::StrCat("quire_", kTtft, "=.1,.25,30,", kItl, "=1e-3")}), wanted);
  EXPECT_EQ(Parse({absl::StrCat(kTtft, "=0.1"), "0.25", "30", absl::StrCat(kItl, "=0.001")}),
            wanted)
      << "as a variable is split";
  EXPECT_EQ(Parse({LatencyBucketsText(wanted)}), wanted);
}

TEST(ParseLatencyBuckets, KeepsTheOldBucketsOverBadOnes) {
  std::string most = "=1", more = "=1";
  for (int i = 2; i <= 64; ++i) absl::StrAppend(&most, ",", i);
  for (int i = 2; i <= 65; ++i) absl::StrAppend(&more, ",", i);
  EXPECT_EQ(Parse({kTtft + most})[0].bounds.size(), 64u);
  std::vector<LatencyBuckets> all = {{.family = kItl, .bounds = {1}}};
  for (const std::string& bad :
       {std::string("=1"), std::string("=0"), std::string("=-1"), std::string("=1,1"),
        std::string("=2,1"), std::string("=inf"), std::string("=nan"), std::string("=1,x"),
        std::string("="), std::string(""), more}) {
    const std::string text = bad == "=1" ? "step_tokens=1" : kTtft + bad;
    EXPECT_FALSE(ParseLatencyBuckets({text}, &all)) << text;
  }
  EXPECT_FALSE(ParseLatencyBuckets({"1,2"}, &all)) << "no name";
  EXPECT_FALSE(ParseLatencyBuckets({absl::StrCat(kTtft, "=1,", kTtft, "=2")}, &all)) << "twice";
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].family, kItl);
}

TEST(ParseLatencyBuckets, IsASettingWithAnErrorThatSaysWhatIsWanted) {
  const std::vector<std::string> flags = {"--model", "m.gguf", "--metrics-buckets"};
  std::vector<std::string> good = flags, bad = flags;
  good.push_back(absl::StrCat(kTtft, "=0.5,1"));
  bad.push_back(absl::StrCat(kTtft, "=1,0.5"));
  const auto config = ParseServerConfig(good, {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->metrics_buckets[0].bounds, (std::vector<double>{0.5, 1}));
  const absl::Status status = ParseServerConfig(bad, {}).status();
  EXPECT_EQ(ExitCodeOf(status), 64);
  for (const char* words : {"--metrics-buckets: got 'time_to_first_token_seconds=1,0.5'",
                            "1..64 ascending seconds above 0", "request_queue_duration_seconds"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
  const auto variable = ParseServerConfig(
      {"--model", "m.gguf"}, {{"QUIRE_METRICS_BUCKETS", absl::StrCat(kTtft, "=0.5,1")}});
  ASSERT_TRUE(variable.ok()) << variable.status();
  EXPECT_EQ(variable->metrics_buckets, config->metrics_buckets);
}

}  // namespace
}  // namespace quire
