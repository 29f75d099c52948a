#include "server/cli/request_flags.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/cli/client.h"

namespace quire {
namespace {

v1::GenerateRequest RequestOf(std::vector<std::string> arguments) {
  CLI::App app;
  RequestFlags flags;
  flags.AddTo(app);
  flags.AddOutputsTo(app);
  app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  v1::GenerateRequest request;
  flags.Fill(&request);
  return request;
}

TEST(RequestFlags, LeaveUnsetWhatIsNotGiven) {
  const v1::GenerateRequest request = RequestOf({});
  EXPECT_FALSE(request.has_priority());
  EXPECT_FALSE(request.has_kv_policy());
  EXPECT_FALSE(request.has_output());
}

TEST(RequestFlags, SetPriorityWindowAndSinks) {
  const v1::GenerateRequest request =
      RequestOf({"--priority", "-3", "--window-tokens", "256", "--sink-tokens", "0"});
  EXPECT_EQ(request.priority(), -3);
  EXPECT_EQ(request.kv_policy().window_tokens(), 256U);
  EXPECT_TRUE(request.kv_policy().has_sink_tokens());
  EXPECT_EQ(request.kv_policy().sink_tokens(), 0U);
  EXPECT_FALSE(RequestOf({"--window-tokens", "64"}).kv_policy().has_sink_tokens());
}

TEST(RequestFlags, SinksNeedAWindow) {
  EXPECT_THROW(RequestOf({"--sink-tokens", "4"}), CLI::ParseError);
}

TEST(RequestFlags, LogprobsAskForThemEvenWithoutAlternatives) {
  const v1::GenerateRequest request = RequestOf({"--logprobs", "0"});
  EXPECT_TRUE(request.output().logprobs());
  EXPECT_EQ(request.output().top_logprobs(), 0U);
}

TEST(Target, RefusesATenantThatMetadataCannotCarry) {
  for (const char* name : {"Team", "a b", "a\nb", "\xc3\xa9"}) {
    CLI::App app;
    Target target;
    target.AddFlags(app);
    app.parse(std::vector<std::string>{name, "--tenant"});
    const absl::Status status = target.Open({});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_TRUE(status.message().starts_with("--tenant: ")) << status;
  }
}

}  // namespace
}  // namespace quire
