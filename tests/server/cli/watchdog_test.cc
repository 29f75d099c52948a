#include "server/cli/watchdog.h"

#include <vector>

#include "gtest/gtest.h"
#include "server/engine/engine.h"
#include "tests/testing/fake_model_runner.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/requests.h"

namespace quire {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(JudgePulse, IsFineWhileIdleOrRecent) {
  EXPECT_EQ(JudgePulse(0, 0.01), Pulse::kFine);
  EXPECT_EQ(JudgePulse(15 * kSecond, 0.01), Pulse::kFine);
}

TEST(JudgePulse, StallsAfterFifteenSecondsAndDiesAfterSixty) {
  EXPECT_EQ(JudgePulse(15 * kSecond + 1, 0.01), Pulse::kStalled);
  EXPECT_EQ(JudgePulse(60 * kSecond, 0.01), Pulse::kStalled);
  EXPECT_EQ(JudgePulse(60 * kSecond + 1, 0.01), Pulse::kDead);
}

TEST(JudgePulse, GivesSlowHostsTwentySteps) {
  EXPECT_EQ(JudgePulse(39 * kSecond, 2), Pulse::kFine);
  EXPECT_EQ(JudgePulse(41 * kSecond, 2), Pulse::kStalled);
  EXPECT_EQ(JudgePulse(161 * kSecond, 2), Pulse::kDead);
}

class WatchdogTest : public testing::Test {
 protected:
  WatchdogTest() { health_.SetState(ServerState::kReady); }

  Health health_{{"quire.v1.InferenceService"}};
  std::atomic<uint64_t> stalls_{0};
};

TEST_F(WatchdogTest, AStallIsCountedOnceAndHealsWithTheNextStep) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(SetHealth({.pulse_age_ns = 20 * kSecond}, health_, stalls_));
    EXPECT_EQ(health_.state(), ServerState::kStalled);
  }
  EXPECT_EQ(stalls_, 1u);
  EXPECT_TRUE(health_.live());
  EXPECT_TRUE(SetHealth({.pulse_age_ns = kSecond}, health_, stalls_));
  EXPECT_EQ(health_.state(), ServerState::kReady);
}

TEST_F(WatchdogTest, ADeadEngineIsGivenUp) {
  EXPECT_FALSE(SetHealth({.pulse_age_ns = 61 * kSecond}, health_, stalls_));
  EXPECT_FALSE(health_.live());
}

TEST_F(WatchdogTest, SaysNothingWhileTheServerLoadsOrDrains) {
  for (const ServerState state : {ServerState::kLoading, ServerState::kDraining}) {
    health_.SetState(state);
    EXPECT_TRUE(SetHealth({.pulse_age_ns = 61 * kSecond, .audits_failed = 1}, health_, stalls_));
    EXPECT_EQ(health_.state(), state);
    EXPECT_TRUE(health_.live());
  }
}

// The engine serves a request, finds at rest that its books do not balance, and goes on.
TEST_F(WatchdogTest, BooksThatDoNotBalanceMakeTheServerFaultyForGood) {
  ManualClock clock;
  Inbox inbox(4);
  StepEvents events;
  FakeModelRunner runner{FakeModelOptions{}};
  bool balanced = true;
  EngineCore core(
      {.context_tokens = 256, .step_tokens = 32, .max_running = 2},
      {.runner = &runner, .inbox = &inbox, .events = &events, .clock = &clock, .audit = [&] {
         return balanced ? absl::OkStatus() : absl::InternalError("a block is lost");
       }});
  const auto beat = [&] {
    return SetHealth(
        {.pulse_age_ns = core.PulseAgeNs(clock.Now()), .audits_failed = core.Stats().audits_failed},
        health_, stalls_);
  };
  const auto serve = [&](uint64_t id) {
    ASSERT_EQ(inbox.Reserve(RequestId{id}), Room::kTaken);
    inbox.Submit(MakeRequest(id, 10, 3));
    EventBatch batch;
    while (inbox.live() > 0) {
      clock.AdvanceMillis(1);
      core.Step();
      events.Take(batch, absl::ZeroDuration());
    }
    clock.AdvanceMillis(2000);
    core.Step();  // the audit of a moment at rest
  };
  serve(1);
  EXPECT_TRUE(beat());
  EXPECT_EQ(health_.state(), ServerState::kReady);
  balanced = false;
  serve(2);
  EXPECT_TRUE(beat()) << "alive, and of no use: the process is not ended from inside";
  EXPECT_EQ(health_.state(), ServerState::kFaulty);
  EXPECT_FALSE(health_.live()) << "so that it is restarted";
  EXPECT_EQ(health_.Serving("quire.v1.InferenceService"), false);
  balanced = true;
  serve(3);
  EXPECT_TRUE(beat());
  EXPECT_EQ(health_.state(), ServerState::kFaulty);
}

}  // namespace
}  // namespace quire
