// The whole server behind the RPC layer, with its threads and the fake model.
#include "tests/server/delivery/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "runtime/base/error_info.h"
#include "server/metrics/books.h"
#include "tests/testing/mix.h"

namespace quire {
namespace {

std::string Scrape(Pipeline& p) {
  Books books{.streams = p.delivery.Stats()};  // downstream first, as a scrape does
  books.steps = p.engine.Stats();
  books.intake = p.intake.Stats();
  return std::string(CheckBooks(books).message());
}

// A9: everything over, nothing held.
void ExpectAtRest(Pipeline& p) {
  ASSERT_TRUE(p.inbox.WaitUntilEmpty(absl::Seconds(20)));
  const StepStats steps = p.engine.Stats();
  EXPECT_EQ(steps.running, 0);
  EXPECT_EQ(steps.waiting, 0);
  EXPECT_EQ(steps.waiting_tokens, 0);
  EXPECT_EQ(steps.blocks_used, 0);
  const StreamStats streams = p.delivery.Stats();
  uint64_t finished = 0;
  for (const uint64_t n : streams.finished) finished += n;
  EXPECT_EQ(steps.accepted, finished);
  EXPECT_EQ(p.intake.Stats().received, steps.accepted + SumOf(p.intake.Stats().rejected));
}

TEST(Pipeline, AnswersLikeAloneWhateverTheNeighbours) {
  Pipeline p;
  p.Start();
  std::vector<std::string> alone;
  for (int i = 0; i < 12; ++i) {
    const auto call = p.Submit(Pipeline::Ask(
        std::string(static_cast<size_t>(3 + 17 * i), static_cast<char>('a' + i)), 5 + i));
    ASSERT_TRUE(call.status.ok());
    ASSERT_TRUE(call.sink->WaitForEnd());
    ASSERT_TRUE(call.sink->ends()[0].ok()) << call.sink->ends()[0];
    EXPECT_EQ(call.sink->finished()[0].usage->completion_tokens, 5 + i);
    alone.push_back(call.sink->Text());
  }
  std::vector<Pipeline::Call> calls;
  for (int i = 0; i < 12; ++i) {
    calls.push_back(p.Submit(
        Pipeline::Ask(std::string(static_cast<size_t>(3 + 17 * i), static_cast<char>('a' + i)),
                      5 + i),
        {.final_only = i % 2 == 0, .tokens_per_message = i % 2 == 0 ? 1 : 1 + i % 5}));
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    ASSERT_TRUE(calls[i].sink->WaitForEnd());
    EXPECT_EQ(calls[i].sink->Text(), alone[i]) << i;
  }
  ExpectAtRest(p);
}

TEST(Pipeline, AccountsForEveryRequestThroughAMassAbort) {
  Pipeline p;
  p.Start();
  std::atomic<bool> done{false};
  std::string broken;
  std::thread scraper([&] {
    while (!done.load()) {
      if (const std::string name = Scrape(p); !name.empty()) broken = name;
    }
  });
  TestRandom random(7);
  ValidRequest beyond = Pipeline::Ask("", 1);
  beyond.prompt.source = std::string(1000, 'x');
  ASSERT_TRUE(p.Submit(std::move(beyond)).sink->WaitForEnd());  // the others may be aborted in time
  std::vector<Pipeline::Call> calls;
  for (int i = 0; i < 300; ++i) {
    ValidRequest request = Pipeline::Ask(
        std::string(static_cast<size_t>(random.Between(1, 200)), 'x'), random.Between(1, 60));
    if (random.Chance(20))
      request.stop.stop_strings = {std::string(1, static_cast<char>(random.Between(0, 127)))};
    if (random.Chance(10)) request.prompt.source = std::string(1000, 'x');  // beyond the context
    const auto call = p.Submit(std::move(request));
    if (!call.status.ok()) {
      EXPECT_EQ(GetErrorInfo(call.status).reason, "QUEUE_FULL");
      EXPECT_GE(GetErrorInfo(call.status).retry_delay_ms, 50);
      EXPECT_TRUE(call.sink->ends().empty());
      std::this_thread::yield();
      continue;
    }
    calls.push_back(call);
    if (random.Chance(50)) {
      const auto& victim =
          calls[static_cast<size_t>(random.Between(0, static_cast<int32_t>(calls.size()) - 1))];
      p.inbox.Abort(victim.id,
                    random.Chance(50) ? FinishReason::kCancelled : FinishReason::kAborted);
    }
  }
  p.inbox.AbortAll(FinishReason::kCancelled);
  for (const auto& call : calls) {
    ASSERT_TRUE(call.sink->WaitForEnd());
    EXPECT_EQ(call.sink->ends().size(), 1u);
    EXPECT_EQ(call.sink->calls_after_end(), 0);
  }
  ExpectAtRest(p);
  done = true;
  scraper.join();
  EXPECT_EQ(broken, "");
  EXPECT_EQ(Scrape(p), "");
  EXPECT_GT(p.intake.Stats().rejected[static_cast<size_t>(RejectReason::kPromptTooLong)], 0u);
}

TEST(Pipeline, DrainLetsRunningRequestsFinishAndRefusesTheRest) {
  std::atomic<bool> hold{true};  // so that it cannot end before the drain begins
  PipelineOptions options;
  options.scheduler.max_running = 1;
  options.model.nan_row = [&hold](const FakeRow& row) {
    while (hold && row.position > 20) std::this_thread::yield();
    return false;
  };
  Pipeline p(options);
  p.Start();
  const auto running = p.Submit(Pipeline::Ask("run", 200));
  while (running.sink->deltas().empty()) std::this_thread::yield();
  const auto queued = p.Submit(Pipeline::Ask("wait", 5));
  std::thread drain([&p] { EXPECT_TRUE(DrainRequests(p.intake, p.inbox, absl::Seconds(20))); });
  // Aborted where it waits, or refused by the intake and gone.
  while (p.inbox.live() > 1 && p.inbox.AbortReason(queued.id) == FinishReason::kNone) {
    std::this_thread::yield();
  }
  hold = false;
  drain.join();
  ASSERT_TRUE(running.sink->WaitForEnd());
  EXPECT_TRUE(running.sink->ends()[0].ok());
  EXPECT_EQ(running.sink->finished()[0].usage->completion_tokens, 200);
  ASSERT_TRUE(queued.sink->WaitForEnd());
  EXPECT_EQ(GetErrorInfo(queued.sink->ends()[0]).reason, "DRAINING");
  const auto late = p.Submit(Pipeline::Ask("late", 5));
  EXPECT_TRUE(absl::IsUnavailable(late.status));
  EXPECT_EQ(GetErrorInfo(late.status).reason, "DRAINING");
  ExpectAtRest(p);
}

TEST(Pipeline, DrainCutsOffWhatDoesNotFinishInTime) {
  PipelineOptions options;
  options.model.nan_row = [](const FakeRow&) {  // a slow model: 400 tokens take most of a second
    absl::SleepFor(absl::Milliseconds(2));
    return false;
  };
  Pipeline p(options);
  p.Start();
  const auto slow = p.Submit(Pipeline::Ask("x", 400));
  while (slow.sink->deltas().empty()) std::this_thread::yield();
  EXPECT_FALSE(DrainRequests(p.intake, p.inbox, absl::Milliseconds(20)));
  ASSERT_TRUE(slow.sink->WaitForEnd());
  EXPECT_EQ(GetErrorInfo(slow.sink->ends()[0]).reason, "SHUTDOWN");
  EXPECT_TRUE(slow.sink->finished().empty());
  ExpectAtRest(p);
}

TEST(Pipeline, ASlowReaderStopsComputingAndCatchesUp) {
  PipelineOptions options;
  options.delivery.stream_buffer_bytes = 10;
  options.model.nan_row = [](const FakeRow&) {
    absl::SleepFor(absl::Milliseconds(1));
    return false;
  };
  Pipeline p(options);
  p.Start();
  const auto slow = p.Submit(Pipeline::Ask("x", 400));
  slow.sink->SetBufferedBytes(1000);
  while (p.delivery.Stats().paused == 0) std::this_thread::yield();
  const auto other = p.Submit(Pipeline::Ask("y", 5));
  ASSERT_TRUE(other.sink->WaitForEnd()) << "a neighbour is not held up";
  EXPECT_TRUE(slow.sink->ends().empty());
  slow.sink->SetBufferedBytes(0);
  ASSERT_TRUE(slow.sink->WaitForEnd());
  EXPECT_EQ(slow.sink->finished()[0].usage->completion_tokens, 400);
  ExpectAtRest(p);
}

TEST(Pipeline, ABurstThatFillsBatchAndQueueIsAcceptedWhole) {
  PipelineOptions options;
  options.scheduler.max_running = 4;
  options.scheduler.max_waiting = 6;
  options.max_live = 10;
  Pipeline p(options);
  std::vector<Pipeline::Call> calls;
  for (int i = 0; i < 11; ++i) calls.push_back(p.Submit(Pipeline::Ask("burst", 3)));
  EXPECT_EQ(GetErrorInfo(calls.back().status).reason, "QUEUE_FULL");
  calls.pop_back();
  p.Start();  // the engine finds all ten at its first step
  for (const auto& call : calls) {
    ASSERT_TRUE(call.sink->WaitForEnd());
    EXPECT_TRUE(call.sink->ends()[0].ok()) << call.sink->ends()[0];
  }
  ExpectAtRest(p);
}

TEST(Pipeline, StopWithoutDrainEndsEveryCall) {
  Pipeline p;
  p.Start();
  std::vector<Pipeline::Call> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(p.Submit(Pipeline::Ask(std::string(100, 'y'), 300)));
  p.Stop();
  for (const auto& call : calls) {
    ASSERT_EQ(call.sink->ends().size(), 1u);
    EXPECT_EQ(call.sink->ends()[0].code(), absl::StatusCode::kUnavailable) << call.sink->ends()[0];
  }
}

TEST(Pipeline, JobsRunOnTheIntakeThreadInOrder) {
  Pipeline p;
  p.Start();
  std::vector<int> order;
  std::atomic<int> left{3};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(p.intake
                    .Post({.run =
                               [&order, &left, i](const absl::Status&) {
                                 order.push_back(i);
                                 left.fetch_sub(1);
                               }})
                    .ok());
  }
  while (left.load() > 0) std::this_thread::yield();
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace quire
