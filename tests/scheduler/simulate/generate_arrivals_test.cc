#include "scheduler/simulate/generate_arrivals.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

LengthDistribution Lengths(std::string_view text) {
  absl::StatusOr<LengthDistribution> lengths = LengthDistribution::Parse(text);
  EXPECT_TRUE(lengths.ok()) << lengths.status();
  return *lengths;
}

ArrivalOptions Options() {
  ArrivalOptions options;
  options.rate = 20;
  options.seconds = 500;
  options.prompt_tokens = Lengths("16..64");
  options.output_tokens = Lengths("exp:40");
  return options;
}

TEST(LengthDistribution, RefusesWhatItCannotRead) {
  for (const char* bad :
       {"", "x", "0", "-3", "1.5", "5..4", "5..", "..5", "exp:", "exp:0", "nan", "lognormal:5",
        "lognormal:5:-1", "lognormal:5:6", "lognormal:5:1:2", "1048577", "1..2000000", "5 "}) {
    EXPECT_EQ(LengthDistribution::Parse(bad).status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

TEST(LengthDistribution, CoversItsRange) {
  EXPECT_EQ(Lengths("256").Draw(0, 0), 256);
  EXPECT_EQ(Lengths("256").Draw(0.999, 0), 256);
  EXPECT_EQ(Lengths("3..5").Draw(0, 0), 3);
  EXPECT_EQ(Lengths("3..5").Draw(0.9999, 0), 5);
  EXPECT_EQ(Lengths("exp:100").Draw(0, 0), 1) << "at least one token";
  EXPECT_EQ(Lengths("exp:100").Draw(1 - std::exp(-2.0), 0), 200);
  EXPECT_EQ(Lengths("lognormal:300:0.7").Draw(0, 0.3), 300) << "the median";
  EXPECT_EQ(Lengths("lognormal:1000000:5").Draw(0.999999, 0), LengthDistribution::kMaxTokens);
}

TEST(GenerateArrivals, KeepsRateAndMeans) {
  const absl::StatusOr<Trace> trace = GenerateArrivals(Options());
  ASSERT_TRUE(trace.ok());
  const double count = static_cast<double>(trace->arrivals.size());
  EXPECT_NEAR(count, 10'000, 400);  // 4 standard deviations
  double prompt = 0, output = 0, square = 0;
  int64_t last = 0;
  for (const Arrival& a : trace->arrivals) {
    ASSERT_GE(a.time_ns, last);
    const double gap = static_cast<double>(a.time_ns - last) * 1e-9 * 20;
    square += gap * gap;
    last = a.time_ns;
    ASSERT_TRUE(a.prompt_tokens >= 16 && a.prompt_tokens <= 64);
    prompt += a.prompt_tokens;
    output += a.output_tokens;
  }
  EXPECT_NEAR(prompt / count, 40, 1);
  EXPECT_NEAR(output / count, 40, 2);
  EXPECT_NEAR(square / count, 2, 0.2) << "gaps of a Poisson process are exponential";
  EXPECT_LE(last, 500'000'000'000);
}

TEST(GenerateArrivals, IsAFunctionOfTheSeed) {
  ArrivalOptions options = Options();
  const Trace a = *GenerateArrivals(options), b = *GenerateArrivals(options);
  EXPECT_EQ(a.arrivals, b.arrivals);
  options.seed = 2;
  EXPECT_NE(GenerateArrivals(options)->arrivals, a.arrivals);
}

TEST(GenerateArrivals, OnlyStretchesTimeAtAnotherRate) {
  ArrivalOptions options = Options();
  const Trace slow = *GenerateArrivals(options);
  options.rate *= 4;
  const Trace fast = *GenerateArrivals(options);
  ASSERT_GT(fast.arrivals.size(), slow.arrivals.size());
  for (size_t i = 0; i < slow.arrivals.size(); ++i) {
    ASSERT_EQ(fast.arrivals[i].prompt_tokens, slow.arrivals[i].prompt_tokens);
    ASSERT_EQ(fast.arrivals[i].output_tokens, slow.arrivals[i].output_tokens);
    ASSERT_NEAR(static_cast<double>(fast.arrivals[i].time_ns) * 4,
                static_cast<double>(slow.arrivals[i].time_ns), 1000);
  }
}

TEST(GenerateArrivals, SharesTenantsAndPrefixes) {
  ArrivalOptions options = Options();
  options.tenants = {{.name = "a", .share = 3, .priority = 2}, {.name = "b", .share = 1}};
  options.prefixes = 2;
  options.prefix_tokens = 100;
  options.prefix_share = 0.5;
  const Trace trace = *GenerateArrivals(options);
  EXPECT_EQ(trace.tenants, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(trace.prefixes, (std::vector<std::string>{"a-0", "a-1", "b-0", "b-1"}));
  double of_a = 0, shared = 0;
  for (const Arrival& a : trace.arrivals) {
    of_a += a.tenant == 0;
    shared += a.prefix >= 0;
    ASSERT_EQ(a.priority, a.tenant == 0 ? 2 : 0);
    ASSERT_EQ(a.prefix_tokens, a.prefix >= 0 ? 100 : 0);
    ASSERT_TRUE(a.prefix < 0 || a.prefix / 2 == a.tenant);
    ASSERT_TRUE(a.prefix < 0 || a.prompt_tokens >= 116);
  }
  const auto count = static_cast<double>(trace.arrivals.size());
  EXPECT_NEAR(of_a / count, 0.75, 0.02);
  EXPECT_NEAR(shared / count, 0.5, 0.02);
}

TEST(GenerateArrivals, CutsToTheContext) {
  ArrivalOptions options = Options();
  options.output_tokens = Lengths("1..500");
  options.prefixes = 1;
  options.prefix_tokens = 90;
  options.max_total_tokens = 100;
  const Trace trace = *GenerateArrivals(options);
  for (const Arrival& a : trace.arrivals) {
    ASSERT_LE(a.prompt_tokens + a.output_tokens, 100);
    ASSERT_GE(a.prompt_tokens, 1);
    ASSERT_GE(a.output_tokens, 1);
    ASSERT_LE(a.prefix_tokens, a.prompt_tokens);
  }
}

TEST(GenerateArrivals, RefusesMoreThanItCanHold) {
  ArrivalOptions options = Options();
  options.rate = 1e5;
  EXPECT_EQ(GenerateArrivals(options).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace quire
