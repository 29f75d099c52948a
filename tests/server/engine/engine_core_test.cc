#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "server/engine/engine.h"
#include "tests/testing/count_allocations.h"
#include "tests/testing/fake_model_runner.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/requests.h"

namespace quire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Always draws token 7; allocates nothing in a step (the fake that checks paging does).
class QuietRunner final : public ModelRunner {
 public:
  QuietRunner() : values_(64 * 320, 0.0f), group_max_(64 * 2, 1.0f) {
    for (size_t row = 0; row < 64; ++row) values_[row * 320 + 7] = 1.0f;
  }
  RunnerLimits Limits() const override {
    return {.num_blocks = 64,
            .vocab_size = 320,
            .context_tokens = 1024,
            .max_rows = 128,
            .max_seqs = 64,
            .max_logits_rows = 64};
  }
  StepOutput Forward(const StepBatch& batch) override {
    const auto rows = static_cast<size_t>(batch.logits_rows);
    return {{.values = std::span(values_).first(rows * 320),
             .group_max = std::span(group_max_).first(rows * 2)}};
  }

 private:
  std::vector<float> values_, group_max_;
};

class EngineCoreTest : public testing::Test {
 protected:
  void Make(FakeModelOptions model = {}, SchedulerOptions options = kOptions) {
    runner_ = std::make_unique<FakeModelRunner>(model);
    core_ = std::make_unique<EngineCore>(
        options,
        EngineLinks{
            .runner = runner_.get(), .inbox = &inbox_, .events = &events_, .clock = &clock_});
  }
  void Submit(Request request) {
    ASSERT_EQ(inbox_.Reserve(request.id, request.num_sequences), Room::kTaken);
    inbox_.Submit(std::move(request));
  }
  // One step; its events are appended to tokens_ and refused_.
  bool Step() {
    clock_.AdvanceMillis(1);
    const bool computed = core_->Step();
    EventBatch batch;
    while (events_.Take(batch, absl::ZeroDuration())) {
      tokens_.insert(tokens_.end(), batch.tokens.begin(), batch.tokens.end());
      refused_.insert(refused_.end(), batch.refused.begin(), batch.refused.end());
    }
    return computed;
  }
  void RunToRest() {
    for (int i = 0; i < 2000 && inbox_.live() > 0; ++i) Step();
    ASSERT_EQ(inbox_.live(), 0);
    Step();
  }
  std::vector<TokenId> TokensOf(uint64_t id) const {
    std::vector<TokenId> out;
    for (const TokenEvent& event : tokens_) {
      if (event.sequence.request == RequestId{id} && event.token != TokenId::kNone)
        out.push_back(event.token);
    }
    return out;
  }
  std::vector<FinishReason> EndsOf(uint64_t id) const {
    std::vector<FinishReason> out;
    for (const TokenEvent& event : tokens_) {
      if (event.sequence.request == RequestId{id} && event.finish != FinishReason::kNone)
        out.push_back(event.finish);
    }
    return out;
  }

  static inline const SchedulerOptions kOptions{
      .context_tokens = 1024, .step_tokens = 32, .max_running = 8};
  ManualClock clock_;
  Inbox inbox_{32};
  StepEvents events_;
  std::unique_ptr<FakeModelRunner> runner_;
  std::unique_ptr<EngineCore> core_;
  std::vector<TokenEvent> tokens_;
  std::vector<RequestRefused> refused_;
};

TEST_F(EngineCoreTest, RunsARequestToItsEndAndRests) {
  Make();
  EXPECT_FALSE(Step());
  EXPECT_EQ(core_->IdleTime(), absl::InfiniteDuration());
  Submit(MakeRequest(1, 50, 4));
  EXPECT_TRUE(Step());
  EXPECT_EQ(core_->IdleTime(), absl::ZeroDuration());
  EXPECT_EQ(core_->Stats().running, 1);
  RunToRest();
  EXPECT_EQ(TokensOf(1).size(), 4u);
  EXPECT_THAT(EndsOf(1), ElementsAre(FinishReason::kLength));
  const StepStats stats = core_->Stats();
  EXPECT_EQ(stats.accepted, 1u);
  EXPECT_EQ(stats.step, 5u);  // 32 + 18 prompt tokens, then three decode steps
  EXPECT_EQ(stats.prefill_tokens, 50u);
  EXPECT_EQ(stats.decode_tokens, 3u);
  EXPECT_EQ(stats.step_tokens.sum, 53);
  EXPECT_EQ(stats.step_seconds[static_cast<size_t>(StepPhase::kPrefill)].count, 2u);
  EXPECT_EQ(stats.step_seconds[static_cast<size_t>(StepPhase::kDecode)].count, 3u);
  EXPECT_EQ(stats.sequences_finished[static_cast<size_t>(SequenceEnd::kLength)], 1u);
  EXPECT_EQ(stats.blocks_used, 0);
  EXPECT_EQ(stats.running + stats.waiting, 0);
}

TEST_F(EngineCoreTest, TellsWhatAllRunningPromptsHaveLeft) {
  Make();
  Submit(MakeRequest(1, 70, 4));
  Step();
  inbox_.SetPaused(RequestId{1}, true);
  Submit(MakeRequest(2, 70, 4));
  Step();
  EXPECT_EQ(core_->Stats().prompt_backlog, 70 - 32);
  inbox_.SetPaused(RequestId{1}, false);
  Step();  // of the first alone
  EXPECT_EQ(core_->Stats().prompt_backlog, 70 - 64 + 70 - 32);
  RunToRest();
  EXPECT_EQ(core_->Stats().prompt_backlog, 0);
}

TEST_F(EngineCoreTest, AnAbortTakesEffectAtTheNextStepEdgeInAnyState) {
  SchedulerOptions options = kOptions;
  options.max_running = 1;
  for (int steps = 0; steps < 6; ++steps) {  // queued, prefill, decode
    SCOPED_TRACE(steps);
    tokens_.clear();
    Make({}, options);
    Submit(MakeRequest(1, 70, 50));
    Submit(MakeRequest(2, 5, 3));
    for (int i = 0; i < steps; ++i) Step();
    const size_t before = TokensOf(1).size();
    inbox_.Abort(RequestId{1}, FinishReason::kCancelled);
    Step();
    EXPECT_THAT(EndsOf(1), ElementsAre(FinishReason::kCancelled));
    EXPECT_EQ(TokensOf(1).size(), before) << "nothing is computed after the edge";
    RunToRest();
    EXPECT_THAT(EndsOf(2), ElementsAre(FinishReason::kLength));
    EXPECT_EQ(core_->Stats().blocks_used, 0);
    core_->CheckInvariants();
  }
}

TEST_F(EngineCoreTest, TakesWhateverTheInboxLetIn) {
  SchedulerOptions options = kOptions;
  options.max_waiting = 1;
  options.max_waiting_tokens = 60;
  Make({}, options);
  for (uint64_t id = 1; id <= 12; ++id) Submit(MakeRequest(id, 50, 4));
  Step();
  EXPECT_EQ(core_->Stats().accepted, 12u);
  RunToRest();
  EXPECT_EQ(core_->Stats().sequences_finished[static_cast<size_t>(SequenceEnd::kLength)], 12u);
}

using EngineCoreDeathTest = EngineCoreTest;

TEST_F(EngineCoreDeathTest, DiesOfARequestThatTheIntakeMustNotLetIn) {
  Make();
  Submit(MakeRequest(1, 2000, 4));
  EXPECT_DEATH(Step(), "the intake lets in what fits");
}

TEST_F(EngineCoreTest, AnOutputWhoseTextHasEndedStopsAloneAtTheNextStepEdge) {
  Make();
  Request request = MakeRequest(1, 10, 30);
  request.num_sequences = 3;
  Submit(std::move(request));
  while (TokensOf(1).size() < 6) Step();
  inbox_.EndOutput({RequestId{1}, 1});
  tokens_.clear();
  Step();
  ASSERT_THAT(EndsOf(1), ElementsAre(FinishReason::kStop));
  for (const TokenEvent& event : tokens_) {
    EXPECT_EQ(event.finish == FinishReason::kStop, event.sequence.output_index == 1);
    EXPECT_EQ(event.token == TokenId::kNone, event.sequence.output_index == 1);
  }
  EXPECT_EQ(inbox_.live(), 1);
  RunToRest();
  EXPECT_THAT(EndsOf(1),
              ElementsAre(FinishReason::kStop, FinishReason::kLength, FinishReason::kLength));
  EXPECT_EQ(core_->Stats().blocks_used, 0);
}

TEST_F(EngineCoreTest, AuditsItsBooksWhenIdleAtMostOnceASecond) {
  Make();
  Submit(MakeRequest(1, 10, 3));
  RunToRest();
  EXPECT_EQ(core_->Stats().audits_ok, 1u);
  Submit(MakeRequest(2, 10, 3));
  RunToRest();
  EXPECT_EQ(core_->Stats().audits_ok, 1u) << "a moment ago";
  EXPECT_GT(core_->IdleTime(), absl::ZeroDuration());
  EXPECT_LE(core_->IdleTime(), absl::Seconds(1)) << "it is due";
  clock_.AdvanceMillis(1000);
  EXPECT_EQ(core_->IdleTime(), absl::ZeroDuration());
  Step();
  EXPECT_EQ(core_->Stats().audits_ok, 2u);
  EXPECT_EQ(core_->Stats().audits_failed, 0u);
  EXPECT_EQ(core_->IdleTime(), absl::InfiniteDuration()) << "nothing has ended since";
}

TEST_F(EngineCoreTest, BooksThatDoNotBalanceAreCountedAndItGoesOn) {
  runner_ = std::make_unique<FakeModelRunner>(FakeModelOptions{});
  core_ = std::make_unique<EngineCore>(
      kOptions, EngineLinks{.runner = runner_.get(),
                            .inbox = &inbox_,
                            .events = &events_,
                            .clock = &clock_,
                            .audit = [] { return absl::InternalError("one is missing"); }});
  Submit(MakeRequest(1, 10, 3));
  RunToRest();
  EXPECT_EQ(core_->Stats().audits_failed, 1u);
  Submit(MakeRequest(2, 10, 3));
  RunToRest();
  EXPECT_EQ(TokensOf(2).size(), 3u);
}

TEST_F(EngineCoreTest, NonFiniteLogitsEndThatRequestAlone) {
  Make();
  Submit(MakeRequest(1, 10, 6));
  RunToRest();
  const std::vector<TokenId> alone = TokensOf(1);
  tokens_.clear();

  FakeModelOptions model;
  model.nan_row = [](const FakeRow& row) { return row.position == 40; };
  Make(model);
  Submit(MakeRequest(1, 10, 6));
  Submit(MakeRequest(2, 38, 20));
  RunToRest();
  EXPECT_THAT(EndsOf(2), ElementsAre(FinishReason::kError));
  EXPECT_EQ(TokensOf(1), alone);
  EXPECT_EQ(core_->Stats().sequences_finished[static_cast<size_t>(SequenceEnd::kError)], 1u);
  EXPECT_EQ(core_->Stats().blocks_used, 0);
}

TEST_F(EngineCoreTest, AnIdleEngineSleepsUntilTheNextDeadline) {
  Make();
  Request request = MakeRequest(1, 5, 100);
  request.deadline = AddNanos(clock_.Now(), 50'000'000);
  Submit(std::move(request));
  Step();
  inbox_.SetPaused(RequestId{1}, true);
  Step();
  Step();
  const absl::Duration idle = core_->IdleTime();
  EXPECT_GT(idle, absl::ZeroDuration());
  EXPECT_LE(idle, absl::Milliseconds(50));
  clock_.AdvanceMillis(60);
  Step();
  EXPECT_THAT(EndsOf(1), ElementsAre(FinishReason::kDeadline));
  EXPECT_EQ(inbox_.live(), 0);
}

TEST_F(EngineCoreTest, ThePulseAgesOnlyWhileWorkIsRunnable) {
  Make();
  Step();
  clock_.AdvanceMillis(5000);
  EXPECT_EQ(core_->PulseAgeNs(clock_.Now()), 0);
  Submit(MakeRequest(1, 5, 10));
  Step();
  clock_.AdvanceMillis(3000);
  EXPECT_EQ(core_->PulseAgeNs(clock_.Now()), 3'000'000'000);
  RunToRest();
  clock_.AdvanceMillis(3000);
  EXPECT_EQ(core_->PulseAgeNs(clock_.Now()), 0);
}

TEST_F(EngineCoreTest, NumbersAndSlotsAreOutBeforeTheEvents) {
  Make();
  Submit(MakeRequest(1, 5, 1));
  core_->Step();
  EXPECT_EQ(inbox_.live(), 0);
  EXPECT_EQ(core_->Stats().sequences_finished[static_cast<size_t>(SequenceEnd::kLength)], 1u);
  EventBatch batch;
  ASSERT_TRUE(events_.Take(batch, absl::ZeroDuration()));
  EXPECT_EQ(batch.tokens.size(), 1u);
  ASSERT_EQ(batch.admitted.size(), 1u);
  EXPECT_EQ(batch.admitted[0].sequence.request, RequestId{1});
}

TEST_F(EngineCoreTest, ASteadyStepAllocatesNothing) {
  QuietRunner runner;
  EngineCore core(kOptions,
                  {.runner = &runner, .inbox = &inbox_, .events = &events_, .clock = &clock_});
  for (uint64_t id = 1; id <= 4; ++id) Submit(MakeRequest(id, 20, 300));
  EventBatch batch;
  for (size_t i = 0; i < 2 * StepEvents::kMaxBatches + 4; ++i) {  // every recycled batch has grown
    core.Step();
    events_.Take(batch, absl::ZeroDuration());
  }
  const AllocationCounter allocations;
  for (int i = 0; i < 100; ++i) {  // crosses block edges
    core.Step();
    events_.Take(batch, absl::ZeroDuration());
    ASSERT_EQ(batch.tokens.size(), 4u);
  }
  EXPECT_EQ(allocations.ours(), 0);
}

}  // namespace
}  // namespace quire
