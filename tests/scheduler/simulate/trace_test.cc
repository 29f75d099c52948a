#include "scheduler/simulate/trace.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/simulate/trace_request.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<Trace> trace = ParseTrace("t.csv", text);
  return trace.ok() ? "" : std::string(trace.status().message());
}

TEST(ParseTrace, ReadsColumnsInAnyOrderAndSkipsComments) {
  const absl::StatusOr<Trace> trace = ParseTrace("t.csv",
                                                 "# made by hand\n"
                                                 "tenant, time_s,output_tokens,prompt_tokens\r\n"
                                                 "\n"
                                                 "b,0.5,7,100\n"
                                                 "a,1.25,8,200\n"
                                                 ",1.25,9,300");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->tenants, ElementsAre("b", "a", "default"));
  ASSERT_EQ(trace->arrivals.size(), 3u);
  EXPECT_EQ(trace->arrivals[0],
            (Arrival{.time_ns = 500'000'000, .prompt_tokens = 100, .output_tokens = 7}));
  EXPECT_EQ(
      trace->arrivals[1],
      (Arrival{.time_ns = 1'250'000'000, .prompt_tokens = 200, .output_tokens = 8, .tenant = 1}));
  EXPECT_EQ(trace->arrivals[2].tenant, 2);
  EXPECT_DOUBLE_EQ(trace->Seconds(), 1.25);
}

TEST(ParseTrace, ReadsPriorityAndPrefix) {
  const absl::StatusOr<Trace> trace =
      ParseTrace("t.csv",
                 "time_s,prompt_tokens,output_tokens,priority,prefix,prefix_tokens\n"
                 "0,100,1,-10,sys,64\n"
                 "0,100,1,,sys,\n"
                 "0,100,1,10,,0\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->prefixes, ElementsAre("sys"));
  EXPECT_EQ(trace->arrivals[0].priority, -10);
  EXPECT_EQ(trace->arrivals[0].prefix, 0);
  EXPECT_EQ(trace->arrivals[0].prefix_tokens, 64);
  EXPECT_EQ(trace->arrivals[1].prefix_tokens, 100);
  EXPECT_EQ(trace->arrivals[2].prefix, -1);
}

TEST(ParseTrace, NamesLineColumnGotAndWanted) {
  const std::string head =
      "time_s,prompt_tokens,output_tokens,tenant,priority,prefix,prefix_tokens\n";
  const auto line3 = [&](const std::string& row) { return ErrorOf(head + "0,1,1,,,,\n" + row); };
  EXPECT_EQ(line3("0,x,1,,,,"), "t.csv:3: prompt_tokens: got 'x', wanted an integer 1..1048576");
  EXPECT_THAT(line3("0,0,1,,,,"), StartsWith("t.csv:3: prompt_tokens: got '0'"));
  EXPECT_THAT(line3("0,1048577,1,,,,"), StartsWith("t.csv:3: prompt_tokens: got '1048577'"));
  EXPECT_THAT(line3("0,1,99999999999,,,,"), StartsWith("t.csv:3: output_tokens: got "));
  EXPECT_THAT(line3("0,1,1.5,,,,"), StartsWith("t.csv:3: output_tokens: got '1.5'"));
  EXPECT_THAT(line3("-1,1,1,,,,"), StartsWith("t.csv:3: time_s: got '-1'"));
  EXPECT_THAT(line3("nan,1,1,,,,"), StartsWith("t.csv:3: time_s: got 'nan'"));
  EXPECT_THAT(line3("inf,1,1,,,,"), StartsWith("t.csv:3: time_s: got 'inf'"));
  EXPECT_THAT(line3("1 2,1,1,,,,"), StartsWith("t.csv:3: time_s: got '1 2'"));
  EXPECT_THAT(line3("0,1,1,A,,,"), StartsWith("t.csv:3: tenant: got 'A', wanted 1..64"));
  EXPECT_THAT(line3(absl::StrCat("0,1,1,", std::string(65, 'a'), ",,,")),
              StartsWith("t.csv:3: tenant: got"));
  EXPECT_THAT(line3("0,1,1,,11,,"), StartsWith("t.csv:3: priority: got '11'"));
  EXPECT_THAT(line3("0,1,1,,,a b,"), StartsWith("t.csv:3: prefix: got 'a b'"));
  EXPECT_THAT(line3("0,9,1,,,p,10"),
              StartsWith("t.csv:3: prefix_tokens: got '10', wanted an integer 0..9"));
  EXPECT_THAT(line3("0,9,1,,,,5"), HasSubstr("the line has no prefix"));
  EXPECT_EQ(line3("0,1,1"), "t.csv:3: got 3 fields, wanted 7");
  EXPECT_THAT(line3("0,\x01,1,,,,"), HasSubstr("got '\\x01'"));
}

TEST(ParseTrace, RefusesTimeThatFalls) {
  EXPECT_EQ(ErrorOf("time_s,prompt_tokens,output_tokens\n2,1,1\n1,1,1\n"),
            "t.csv:3: time_s: got 1, before the line above");
}

TEST(ParseTrace, RefusesBadHeaders) {
  EXPECT_EQ(ErrorOf("# c\ntime_s,prompt_tokens\n"), "t.csv:2: column 'output_tokens' is missing");
  EXPECT_THAT(ErrorOf("time_s,speed\n"), StartsWith("t.csv:1: unknown column 'speed'"));
  EXPECT_EQ(ErrorOf("time_s,time_s\n"), "t.csv:1: column 'time_s' is named twice");
  EXPECT_THAT(ErrorOf(""), HasSubstr("no header line"));
  EXPECT_THAT(ErrorOf("time_s,prompt_tokens,output_tokens\n\n"), HasSubstr("no request"));
}

TEST(TraceCsv, ReadsBackAsItWas) {
  const std::string text =
      "time_s,prompt_tokens,output_tokens,tenant,priority,prefix,prefix_tokens\n"
      "0.000001,5,6,a,-3,p1,4\n"
      "12.500000,7,8,b,0,,\n";
  const absl::StatusOr<Trace> trace = ParseTrace("t.csv", text);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(TraceCsv(*trace), text);
}

TEST(RequestOf, SharesTokensExactlyWhereTheTraceSays) {
  const absl::StatusOr<Trace> trace =
      ParseTrace("t.csv",
                 "time_s,prompt_tokens,output_tokens,tenant,priority,prefix,prefix_tokens\n"
                 "0,200,5,a,3,p,130\n"
                 "2,150,6,a,0,p,130\n"
                 "3,150,6,a,0,q,130\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  const Request r0 = RequestOf(*trace, 0, 1 << 20), r1 = RequestOf(*trace, 1, 1 << 20);
  const Request r2 = RequestOf(*trace, 2, 1 << 20);
  ASSERT_EQ(r0.prompt.size(), 200u);
  ASSERT_EQ(r1.prompt.size(), 150u);
  EXPECT_TRUE(std::equal(r0.prompt.begin(), r0.prompt.begin() + 130, r1.prompt.begin()));
  EXPECT_NE(r0.prompt[130], r1.prompt[130]);
  EXPECT_NE(r0.prompt[0], r2.prompt[0]);
  EXPECT_EQ(r0.stop.max_tokens, 5);
  EXPECT_EQ(r0.priority, 3);
  EXPECT_EQ(Nanos(r1.arrival), 2'000'000'000);
  EXPECT_EQ(ArrivalOf(r1.id), 1u);
  const Request small = RequestOf(*trace, 0, 10);
  for (const TokenId token : small.prompt) {
    EXPECT_LT(static_cast<int32_t>(token), 10);
  }
}

}  // namespace
}  // namespace quire
