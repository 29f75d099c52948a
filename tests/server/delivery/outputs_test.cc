// Requests with several outputs: each ends alone, the call ends with the last of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/delivery/delivery_fixture.h"

namespace quire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TokenEvent Event(int32_t output, int32_t token, FinishReason finish = FinishReason::kNone) {
  TokenEvent event = DeliveryFixture::Event(1, token, finish);
  event.sequence.output_index = output;
  return event;
}

std::vector<SequenceId> Ends(DeliveryFixture& d) {
  InboxMessages messages;
  d.inbox.Drain(messages);
  EXPECT_THAT(messages.aborts, IsEmpty());
  return messages.ends;
}

TEST(Outputs, EndEachOnItsOwnWithUsageOnTheLast) {
  DeliveryFixture d;
  const auto sink = d.Open(1, {.num_sequences = 3, .seed = 7});
  d.Prepare(1, 5);
  d.Admit(1);
  d.Step({Event(0, 'a'), Event(1, 'b'), Event(2, 'c')});
  d.Step({Event(0, 'd', FinishReason::kLength), Event(1, 'e'), Event(2, 'f')});
  d.Step({Event(1, 257, FinishReason::kStop), Event(2, 'g')});
  d.Pump();
  EXPECT_THAT(sink->ends(), IsEmpty());
  d.Step({Event(2, -1, FinishReason::kTimeLimit)});
  d.Pump();
  EXPECT_EQ(sink->Text(0), "ad");
  EXPECT_EQ(sink->Text(1), "be");
  EXPECT_EQ(sink->Text(2), "cfg");
  const std::vector<OutFinished> finished = sink->finished();
  ASSERT_EQ(finished.size(), 3u);
  EXPECT_EQ(finished[0].output_index, 0);
  EXPECT_EQ(finished[0].reason, FinishReason::kLength);
  EXPECT_EQ(finished[1].output_index, 1);
  EXPECT_EQ(finished[1].reason, FinishReason::kStop);
  EXPECT_EQ(finished[2].output_index, 2);
  EXPECT_EQ(finished[2].reason, FinishReason::kTimeLimit);
  for (const OutFinished& each : finished) EXPECT_EQ(each.seed, 7u);
  EXPECT_FALSE(finished[0].usage.has_value() || finished[1].usage.has_value());
  ASSERT_TRUE(finished[2].usage.has_value());
  EXPECT_EQ(finished[2].usage->prompt_tokens, 5) << "once, whatever the number of outputs";
  EXPECT_EQ(finished[2].usage->completion_tokens, 2 + 2 + 3);
  EXPECT_EQ(finished[2].usage->stop_tokens, 1);
  ASSERT_EQ(sink->ends().size(), 1u);
  EXPECT_TRUE(sink->ends()[0].ok());
  const StreamStats stats = d.delivery.Stats();
  EXPECT_EQ(stats.finished[static_cast<size_t>(Outcome::kOk)], 1u);
  EXPECT_EQ(stats.prompt_tokens, 5u);
  EXPECT_EQ(stats.requests_with_token, 1u);
  EXPECT_EQ(stats.sequences_with_token, 3u);
  EXPECT_EQ(stats.generation_tokens, 8u);
}

TEST(Outputs, AStopStringEndsTheComputeOfItsOutputOnly) {
  DeliveryFixture d;
  const auto sink = d.Open(1, {.num_sequences = 2, .stop_strings = {"ab"}});
  d.Prepare(1);
  d.Step({Event(0, 'a'), Event(1, 'x')});
  d.Step({Event(0, 'b'), Event(1, 'y')});
  d.Pump();
  EXPECT_THAT(Ends(d), ElementsAre(SequenceId{RequestId{1}, 0}));
  // The engine was a step ahead.
  d.Step({Event(0, 'c'), Event(1, 'z')});
  d.Step({Event(0, -1, FinishReason::kStop), Event(1, 'z', FinishReason::kLength)});
  d.Pump();
  EXPECT_EQ(sink->Text(0), "");
  EXPECT_EQ(sink->Text(1), "xyzz");
  EXPECT_EQ(sink->finished().size(), 2u);
  ASSERT_EQ(sink->ends().size(), 1u);
  EXPECT_EQ(sink->calls_after_end(), 0);
  EXPECT_EQ(d.delivery.Stats().discarded_stop_lag, 1u);
}

TEST(Outputs, AnOutputThatTheEngineEndedNeedsNoEndFromHere) {
  DeliveryFixture d;
  d.Open(1, {.num_sequences = 2});
  d.Prepare(1);
  d.Step({Event(0, 'a', FinishReason::kLength), Event(1, 'x')});
  d.Pump();
  EXPECT_THAT(Ends(d), IsEmpty());
}

TEST(Outputs, AreAbortedTogetherWhenOneFails) {
  DeliveryFixture d;
  const auto sink = d.Open(1, {.num_sequences = 3});
  d.Prepare(1);
  d.Step({Event(0, 'a'), Event(1, 'b'), Event(2, 'c')});
  d.Step({Event(1, -1, FinishReason::kError)});
  d.Pump();
  ASSERT_EQ(sink->ends().size(), 1u);
  EXPECT_EQ(sink->ends()[0].code(), absl::StatusCode::kInternal);
  EXPECT_THAT(sink->finished(), IsEmpty());
  EXPECT_THAT(d.Aborts(), ElementsAre(Pair(RequestId{1}, FinishReason::kError)));
  d.Step({Event(0, -1, FinishReason::kError), Event(2, -1, FinishReason::kError)});
  d.Pump();
  EXPECT_EQ(sink->calls_after_end(), 0);
}

TEST(Outputs, AllEndWithTheReasonOfAnAbort) {
  DeliveryFixture d;
  const auto sink = d.Open(1, {.num_sequences = 2});
  d.Prepare(1);
  d.Step({Event(0, 'a'), Event(1, 'b')});
  d.Step({Event(0, -1, FinishReason::kAborted), Event(1, -1, FinishReason::kAborted)});
  d.Pump();
  ASSERT_EQ(sink->finished().size(), 2u);
  EXPECT_EQ(sink->finished()[0].reason, FinishReason::kAborted);
  EXPECT_EQ(sink->finished()[1].reason, FinishReason::kAborted);
  EXPECT_EQ(sink->finished()[1].usage->completion_tokens, 2);
  EXPECT_TRUE(sink->ends()[0].ok());
}

TEST(Outputs, AreOneRecordOfTheLog) {
  std::vector<RequestRecord> records;
  DeliveryFixture d({.log = [&](const RequestRecord& record) { records.push_back(record); }});
  d.Open(1, {.name = "job", .tenant = "team", .num_sequences = 2});
  d.Prepare(1, 5);
  d.Admit(1);
  d.Step({Event(0, 'a', FinishReason::kLength), Event(1, 'b')});
  d.Pump();
  EXPECT_THAT(records, IsEmpty());
  TokenEvent last = Event(1, 257, FinishReason::kStop);
  last.preemptions = 2;
  d.Step({last});
  d.Pump();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].request_id, "job");
  EXPECT_EQ(records[0].tenant, "team");
  EXPECT_EQ(records[0].code, absl::StatusCode::kOk);
  EXPECT_EQ(records[0].reason, "stop");
  EXPECT_EQ(records[0].outputs, 2);
  EXPECT_EQ(records[0].usage.prompt_tokens, 5);
  EXPECT_EQ(records[0].usage.completion_tokens, 2);
  EXPECT_EQ(records[0].timing.preemptions, 2);
  d.Open(2, {.name = "late"});
  d.Prepare(2, 7);
  d.Finish(2, FinishReason::kDeadline);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].code, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(records[1].reason, "DEADLINE");
}

TEST(Outputs, TellHowMuchOfThePromptWasCached) {
  DeliveryFixture d;
  const auto sink = d.Open(1, {.num_sequences = 2});
  d.Prepare(1, 200);
  EventBatch batch;
  batch.admitted = {{{RequestId{1}, 0}, d.clock.Now(), 128},
                    {{RequestId{1}, 1}, d.clock.Now(), 199}};
  d.events.Publish(batch);
  d.Step({Event(0, 'a', FinishReason::kLength), Event(1, 'b', FinishReason::kLength)});
  d.Pump();
  EXPECT_EQ(sink->finished()[1].usage->prompt_tokens, 200);
  EXPECT_EQ(sink->finished()[1].usage->cached_prompt_tokens, 128) << "at the first admission";
  EXPECT_EQ(d.delivery.Stats().cached_prompt_tokens, 128u);
}

}  // namespace
}  // namespace quire
