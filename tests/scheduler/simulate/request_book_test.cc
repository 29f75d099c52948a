#include "scheduler/simulate/request_book.h"

#include "gtest/gtest.h"
#include "scheduler/simulate/trace_request.h"

namespace quire {
namespace {

constexpr int64_t kMs = 1'000'000;

Trace TwoTenants() {
  return {.arrivals = {{.time_ns = 0, .prompt_tokens = 10, .output_tokens = 3},
                       {.time_ns = 10 * kMs, .prompt_tokens = 20, .output_tokens = 2, .tenant = 1},
                       {.time_ns = 20 * kMs, .prompt_tokens = 30, .output_tokens = 2, .tenant = 1},
                       {.time_ns = 30 * kMs, .prompt_tokens = 40, .output_tokens = 2}},
          .tenants = {"a", "b"},
          .prefixes = {}};
}

TokenEvent Token(size_t arrival, FinishReason finish = FinishReason::kNone) {
  TokenEvent event;
  event.sequence.request = TraceRequestId(arrival);
  event.token = TokenId{1};
  event.finish = finish;
  return event;
}

TEST(RequestBook, KeepsLatenciesAndCountsByTenant) {
  const Trace trace = TwoTenants();
  RequestBook book(trace, {});
  for (size_t i = 0; i < 4; ++i) book.Arrived(TraceRequestId(i));
  book.Record(Token(0), MonotonicTime{50 * kMs});
  book.Record(Token(0), MonotonicTime{80 * kMs});
  book.Record(Token(0, FinishReason::kLength), MonotonicTime{100 * kMs});
  book.Record(Token(1), MonotonicTime{60 * kMs});
  book.Rejected(TraceRequestId(2));
  EXPECT_EQ(book.open(), 2);
  TokenEvent late;  // an end without a token
  late.sequence.request = TraceRequestId(3);
  late.finish = FinishReason::kQueueAge;
  book.Record(late, MonotonicTime{90 * kMs});
  late.sequence.request = TraceRequestId(1);
  book.Record(late, MonotonicTime{95 * kMs});
  EXPECT_EQ(book.open(), 0);

  const std::vector<GroupTotals> groups = book.Totals();
  ASSERT_EQ(groups.size(), 3u);
  const GroupTotals &all = groups[0], &a = groups[1], &b = groups[2];
  EXPECT_EQ(all.arrived, 4);
  EXPECT_EQ(all.completed + all.rejected + all.expired, 4);
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.completed, 1);
  EXPECT_EQ(a.expired, 1);
  EXPECT_EQ(a.prompt_tokens, 10) << "once, when its first token is there";
  EXPECT_EQ(a.output_tokens, 3);
  EXPECT_NEAR(a.ttft.Max(), 0.050, 1e-9);
  EXPECT_EQ(a.itl.count(), 2);
  EXPECT_NEAR(a.itl.Max(), 0.030, 1e-9);
  EXPECT_NEAR(a.e2e.Max(), 0.100, 1e-9);
  EXPECT_EQ(b.prompt_tokens, 20) << "a refused prompt is not served";
  EXPECT_EQ(all.prompt_tokens, 30);
  EXPECT_EQ(b.rejected, 1);
  EXPECT_EQ(b.expired, 1);
  EXPECT_EQ(b.e2e.count(), 0);
  EXPECT_NEAR(b.ttft.Max(), 0.050, 1e-9) << "counts from its own arrival";
}

TEST(RequestBook, CountsAsGoodWhatMeetsEveryObjective) {
  const Trace trace = TwoTenants();
  const auto good = [&](const LatencyObjective& objective) {
    RequestBook book(trace, objective);
    book.Arrived(TraceRequestId(0));
    book.Record(Token(0), MonotonicTime{50 * kMs});
    book.Record(Token(0), MonotonicTime{90 * kMs});
    book.Record(Token(0, FinishReason::kLength), MonotonicTime{100 * kMs});
    return book.Totals()[0].good;
  };
  EXPECT_EQ(good({}), 1);
  EXPECT_EQ(good({.ttft_s = 0.0501, .itl_s = 0.0251, .e2e_s = 0.1001}), 1);
  EXPECT_EQ(good({.ttft_s = 0.0499}), 0);
  EXPECT_EQ(good({.itl_s = 0.0249}), 0) << "the mean, 25 ms, counts; not the longest, 40 ms";
  EXPECT_EQ(good({.e2e_s = 0.0999}), 0);
}

}  // namespace
}  // namespace quire
