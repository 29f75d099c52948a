#include "server/engine/step_events.h"

#include <gtest/gtest.h>

#include <thread>

namespace quire {
namespace {

EventBatch Batch(uint64_t id) {
  EventBatch batch;
  batch.tokens.push_back({});
  batch.tokens.back().sequence.request = RequestId{id};
  return batch;
}

TEST(StepEvents, DeliversOneBatchPerStepInOrder) {
  StepEvents events;
  for (uint64_t id = 1; id <= 3; ++id) {
    EventBatch batch = Batch(id);
    events.Publish(batch);
    EXPECT_TRUE(batch.empty());
  }
  EventBatch out;
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_TRUE(events.Take(out, absl::ZeroDuration()));
    ASSERT_EQ(out.tokens.size(), 1u);
    EXPECT_EQ(out.tokens[0].sequence.request, RequestId{id});
  }
  EXPECT_FALSE(events.Take(out, absl::ZeroDuration()));
}

TEST(StepEvents, WhatIntakePreparedComesWithOrBeforeTheFirstStep) {
  StepEvents events;
  events.Prepare({.id = RequestId{1}, .prompt_tokens = 4});
  EventBatch batch = Batch(1);
  events.Publish(batch);
  events.Refuse({.id = RequestId{2},
                 .status = absl::InvalidArgumentError("no"),
                 .reason = FinishReason::kNone});
  EventBatch out;
  ASSERT_TRUE(events.Take(out, absl::ZeroDuration()));
  ASSERT_EQ(out.prepared.size(), 1u);
  EXPECT_EQ(out.prepared[0].prompt_tokens, 4);
  EXPECT_EQ(out.tokens.size(), 1u);
  ASSERT_EQ(out.refused.size(), 1u);
  EXPECT_EQ(out.refused[0].id, RequestId{2});
}

TEST(StepEvents, ReusesStorage) {
  StepEvents events;
  EventBatch in, out;
  for (size_t i = 0; i < 3 * StepEvents::kMaxBatches; ++i) {
    in.tokens.resize(8);
    events.Publish(in);
    ASSERT_TRUE(events.Take(out, absl::ZeroDuration()));
  }
  EXPECT_GE(in.tokens.capacity(), 8u);
}

TEST(StepEvents, AFullQueueMakesTheEngineWaitForDelivery) {
  StepEvents events;
  for (size_t i = 0; i < StepEvents::kMaxBatches; ++i) {
    EventBatch batch = Batch(i + 1);
    events.Publish(batch);
  }
  std::thread engine([&] {
    EventBatch batch = Batch(999);
    events.Publish(batch);
  });
  EventBatch out;
  uint64_t last = 0;
  for (size_t i = 0; i <= StepEvents::kMaxBatches; ++i) {
    ASSERT_TRUE(events.Take(out, absl::InfiniteDuration()));
    last = static_cast<uint64_t>(out.tokens[0].sequence.request);
  }
  engine.join();
  EXPECT_EQ(last, 999u);
}

TEST(StepEvents, WakeEndsAWaitWithoutNews) {
  StepEvents events;
  std::thread waker([&] { events.Wake(); });
  EventBatch out;
  EXPECT_FALSE(events.Take(out, absl::InfiniteDuration()));
  waker.join();
}

}  // namespace
}  // namespace quire
