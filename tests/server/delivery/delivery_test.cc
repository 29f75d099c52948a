#include "server/delivery/delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/server/delivery/delivery_fixture.h"

namespace quire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr int32_t kEos = static_cast<int32_t>(FakeTokenizer::kEos);

TEST(Delivery, StreamsTextAndEndsOnce) {
  DeliveryFixture f;
  const auto sink = f.Open(1, {.seed = 77});
  f.Prepare(1, 9);
  f.clock.AdvanceMillis(3);
  f.Admit(1);
  f.clock.AdvanceMillis(10);
  f.Say(1, "hi");
  f.clock.AdvanceMillis(20);
  f.Finish(1, FinishReason::kStop, kEos);

  EXPECT_EQ(sink->Text(), "hi");
  EXPECT_EQ(sink->deltas().size(), 2u);
  ASSERT_EQ(sink->finished().size(), 1u);
  const OutFinished end = sink->finished()[0];
  EXPECT_EQ(end.reason, FinishReason::kStop);
  EXPECT_EQ(end.matched, MatchedStop::kEos);
  EXPECT_EQ(end.matched_value, static_cast<uint32_t>(kEos));
  EXPECT_EQ(end.seed, 77u);
  ASSERT_TRUE(end.usage.has_value());
  EXPECT_EQ(end.usage->prompt_tokens, 9);
  EXPECT_EQ(end.usage->completion_tokens, 2);
  EXPECT_EQ(end.usage->stop_tokens, 1);
  EXPECT_EQ(end.timing.queue_us, 3000);
  EXPECT_EQ(end.timing.prefill_us, 10'000);
  EXPECT_EQ(end.timing.decode_us, 20'000);
  ASSERT_EQ(sink->ends().size(), 1u);
  EXPECT_TRUE(sink->ends()[0].ok());
  EXPECT_GT(f.flushes, 0);
}

TEST(Delivery, AStopStringEndsTheRequestAndAbortsItsCompute) {
  DeliveryFixture f;
  const auto sink = f.Open(1, {.stop_strings = {"END"}});
  f.Prepare(1);
  f.Admit(1);
  f.Say(1, "abEND");
  EXPECT_EQ(sink->Text(), "ab");
  ASSERT_EQ(sink->finished().size(), 1u);
  EXPECT_EQ(sink->finished()[0].matched, MatchedStop::kStopString);
  EXPECT_EQ(sink->finished()[0].usage->completion_tokens, 2);
  EXPECT_EQ(sink->finished()[0].usage->stop_tokens, 3);
  EXPECT_EQ(sink->ends().size(), 1u);
  EXPECT_THAT(f.Aborts(), ElementsAre(Pair(RequestId{1}, FinishReason::kStop)));

  f.Say(1, "zz");  // drawn before the abort took effect
  f.Finish(1, FinishReason::kStop);
  EXPECT_EQ(sink->ends().size(), 1u);
  EXPECT_EQ(sink->calls_after_end(), 0);
  const StreamStats stats = f.delivery.Stats();
  EXPECT_EQ(stats.discarded_stop_lag, 2u);
  EXPECT_EQ(stats.generation_tokens, 5u);
  EXPECT_EQ(stats.finished[static_cast<size_t>(Outcome::kOk)], 1u);
}

TEST(Delivery, AStopStringThatCompletesWithTheLastTokenIsAStop) {
  DeliveryFixture f;
  const auto sink = f.Open(1, {.stop_strings = {"!"}});
  f.Prepare(1);
  f.Say(1, "ab");
  f.Finish(1, FinishReason::kLength, '!');
  EXPECT_EQ(sink->finished()[0].reason, FinishReason::kStop);
  EXPECT_THAT(f.Aborts(), IsEmpty());
}

TEST(Delivery, LengthNamesWhoseLimitItWas) {
  DeliveryFixture f;
  const auto sink = f.Open(1, {.stop_strings = {"xyz"}});
  f.Prepare(1, 5, LengthBound::kContext);
  f.Say(1, "ax");
  EXPECT_EQ(sink->Text(), "a") << "x may still grow into the stop string";
  f.Finish(1, FinishReason::kLength, 'y');
  EXPECT_EQ(sink->Text(), "axy") << "held bytes are flushed";
  EXPECT_EQ(sink->finished()[0].length_bound, LengthBound::kContext);
}

TEST(Delivery, FinalModeHoldsTextUntilTheEnd) {
  DeliveryFixture f;
  const auto sink = f.Open(1, {.final_only = true, .tokens = true});
  f.Prepare(1);
  f.Say(1, "abc");
  EXPECT_THAT(sink->deltas(), IsEmpty());
  f.Finish(1, FinishReason::kLength, 'd');
  EXPECT_EQ(sink->deltas().size(), 1u);
  EXPECT_EQ(sink->Text(), "abcd");
  EXPECT_EQ(sink->Tokens().size(), 4u);
}

TEST(Delivery, TokensCarryLogprobsOnlyWhenAsked) {
  DeliveryFixture f;
  const auto plain = f.Open(1, {.text = false, .tokens = true});
  const auto rich = f.Open(2, {.tokens = true, .logprobs = true});
  f.Prepare(1);
  f.Prepare(2);
  TokenEvent event = DeliveryFixture::Event(1, 'a');
  event.logprob = -0.5f;
  event.rank = 1;
  event.top_count = 1;
  event.top[0] = {TokenId{'b'}, -0.25f};
  TokenEvent other = event;
  other.sequence.request = RequestId{2};
  f.Step({event, other});
  f.Pump();
  ASSERT_EQ(plain->Tokens().size(), 1u);
  EXPECT_EQ(plain->Text(), "");
  EXPECT_EQ(plain->Tokens()[0].piece, "a");
  EXPECT_FALSE(plain->Tokens()[0].logprob.has_value());
  ASSERT_EQ(rich->Tokens().size(), 1u);
  EXPECT_EQ(rich->Tokens()[0].logprob, -0.5f);
  ASSERT_EQ(rich->Tokens()[0].top.size(), 1u);
  EXPECT_EQ(rich->Tokens()[0].top[0].piece, "b");
}

TEST(Delivery, KeepStopLeavesAStopTokenInTextAndTokens) {
  DeliveryFixture f;
  const auto kept =
      f.Open(1, {.tokens = true, .stop_token_ids = {TokenId{'.'}}, .keep_stop = true});
  const auto cut = f.Open(2, {.tokens = true, .stop_token_ids = {TokenId{'.'}}});
  f.Prepare(1);
  f.Prepare(2);
  f.Finish(1, FinishReason::kStop, '.');
  f.Finish(2, FinishReason::kStop, '.');
  EXPECT_EQ(kept->Text(), ".");
  EXPECT_EQ(kept->finished()[0].usage->completion_tokens, 1);
  EXPECT_EQ(cut->Text(), "");
  EXPECT_THAT(cut->Tokens(), IsEmpty());
  EXPECT_EQ(cut->finished()[0].usage->stop_tokens, 1);
  EXPECT_EQ(cut->finished()[0].matched, MatchedStop::kStopToken);
}

TEST(Delivery, ADiscardedStreamIsNeverCalled) {
  DeliveryFixture f;
  const auto early = f.Open(1);
  f.delivery.Discard(RequestId{1});
  const auto late = f.Open(2);
  f.Pump();
  f.delivery.Discard(RequestId{2});
  f.Pump();
  EXPECT_EQ(f.delivery.Stats().open, 0);
  f.delivery.Stop();
  EXPECT_THAT(early->ends(), IsEmpty());
  EXPECT_THAT(late->ends(), IsEmpty());
}

TEST(Delivery, StopEndsWhatIsLeftWithShutdown) {
  DeliveryFixture f;
  const auto sink = f.Open(1);
  const auto unsent = f.Open(2);
  f.Prepare(1);
  f.Say(1, "ab");
  f.delivery.Stop();
  ASSERT_EQ(sink->ends().size(), 1u);
  EXPECT_EQ(GetErrorInfo(sink->ends()[0]).reason, "SHUTDOWN");
  ASSERT_EQ(unsent->ends().size(), 1u);
  EXPECT_EQ(GetErrorInfo(unsent->ends()[0]).reason, "DRAINING");
}

TEST(Delivery, EndAllEndsAndLogsEachStreamOnceWithoutWaitingForTheEngine) {
  std::mutex mutex;
  std::vector<RequestRecord> lines;
  DeliveryFixture f({.log = [&](const RequestRecord& record) {
    const std::lock_guard lock(mutex);
    lines.push_back(record);
  }});
  const auto running = f.Open(1, {.name = "running", .tenant = "t"});
  const auto queued = f.Open(2, {.name = "queued"});
  f.Prepare(1);
  f.Say(1, "ab");
  f.delivery.Start();
  EXPECT_TRUE(f.delivery.EndAll(absl::Seconds(20)));
  EXPECT_EQ(running->ends().size(), 1u);
  EXPECT_EQ(queued->ends().size(), 1u);
  EXPECT_FALSE(f.delivery.Discard(RequestId{2})) << "it has its line already";

  const auto late = f.Open(3, {.name = "late"});  // a call that came in meanwhile
  f.delivery.Stop();
  EXPECT_EQ(late->ends().size(), 1u);
  EXPECT_TRUE(f.delivery.EndAll(absl::ZeroDuration())) << "nothing is left to do";
  std::map<std::string, std::string> reasons;
  for (const RequestRecord& line : lines) {
    EXPECT_EQ(line.code, absl::StatusCode::kUnavailable);
    EXPECT_TRUE(reasons.emplace(line.request_id, line.reason).second) << "one line each";
  }
  EXPECT_THAT(reasons, ElementsAre(Pair("late", "DRAINING"), Pair("queued", "DRAINING"),
                                   Pair("running", "SHUTDOWN")));
}

TEST(Delivery, EndAllGivesUpOnAThreadThatDoesNotRun) {
  DeliveryFixture f;
  f.Open(1);
  EXPECT_FALSE(f.delivery.EndAll(absl::Milliseconds(1)));
}

TEST(Delivery, ASlowReaderIsPausedAndResumedAtHalf) {
  DeliveryFixture f({.stream_buffer_bytes = 1000, .slow_reader_ms = 30'000});
  const auto sink = f.Open(1);
  f.Prepare(1);
  f.Say(1, "a");
  sink->SetBufferedBytes(1001);
  f.Say(1, "b");
  InboxMessages messages;
  f.inbox.Drain(messages);
  EXPECT_THAT(messages.pauses, ElementsAre(Pair(RequestId{1}, true)));
  EXPECT_EQ(f.delivery.Stats().paused, 1);
  EXPECT_EQ(f.delivery.Stats().buffered_bytes, 1001);

  sink->SetBufferedBytes(501);
  f.Pump();
  f.inbox.Drain(messages);
  EXPECT_THAT(messages.pauses, IsEmpty());
  sink->SetBufferedBytes(500);
  f.Pump();
  f.inbox.Drain(messages);
  EXPECT_THAT(messages.pauses, ElementsAre(Pair(RequestId{1}, false)));
  EXPECT_EQ(f.delivery.Stats().pauses, 1u);
  EXPECT_THAT(sink->ends(), IsEmpty());
}

TEST(Delivery, AReaderWithoutProgressEndsAndOneWithProgressDoesNot) {
  DeliveryFixture f({.stream_buffer_bytes = 1000, .slow_reader_ms = 30'000});
  const auto stuck = f.Open(1);
  const auto slow = f.Open(2);
  f.Prepare(1);
  f.Prepare(2);
  f.Say(1, "ab");
  f.Say(2, "ab");
  stuck->SetBufferedBytes(5000);
  slow->SetBufferedBytes(5000);
  f.Pump();
  f.clock.AdvanceMillis(29'000);
  slow->SetBufferedBytes(4000);
  f.Pump();
  f.clock.AdvanceMillis(2'000);
  f.Pump();
  ASSERT_EQ(stuck->ends().size(), 1u);
  EXPECT_TRUE(absl::IsResourceExhausted(stuck->ends()[0]));
  const ErrorInfo info = GetErrorInfo(stuck->ends()[0]);
  EXPECT_EQ(info.reason, "SLOW_READER");
  EXPECT_THAT(info.metadata, ElementsAre(Pair("generated_tokens", "2")));
  EXPECT_EQ(info.retry_delay_ms, -1);
  EXPECT_THAT(slow->ends(), IsEmpty());
  EXPECT_THAT(f.Aborts(), ElementsAre(Pair(RequestId{1}, FinishReason::kSlowReader)));
  f.Finish(1, FinishReason::kSlowReader);
  EXPECT_EQ(f.delivery.Stats().finished[static_cast<size_t>(Outcome::kSlowReader)], 1u);
}

TEST(Delivery, CountsTokensAndTimesOnce) {
  DeliveryFixture f;
  const auto one = f.Open(1);
  const auto two = f.Open(2);
  const auto none = f.Open(3);
  for (uint64_t id = 1; id <= 3; ++id) f.Prepare(id, 10);
  f.Say(1, "abc");
  f.Say(2, "a");
  f.Finish(1, FinishReason::kLength, 'd');
  f.Finish(2, FinishReason::kCancelled);
  f.Finish(3, FinishReason::kDeadline);
  const StreamStats stats = f.delivery.Stats();
  EXPECT_EQ(stats.generation_tokens, 5u);
  EXPECT_EQ(stats.inter_token.count, stats.generation_tokens - stats.sequences_with_token);
  EXPECT_EQ(stats.time_to_first_token.count, 2u);
  EXPECT_EQ(stats.requests_with_token, 2u);
  EXPECT_EQ(stats.prompt_tokens, 20u) << "of the prompts that were done";
  EXPECT_EQ(stats.request.count, 3u);
  EXPECT_EQ(stats.open, 0);
}

}  // namespace
}  // namespace quire
