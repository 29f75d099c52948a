// Every way a request can end, in every state it can be in: one end, the right status, counted
// once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/delivery/delivery.h"
#include "server/delivery/end_status.h"
#include "tests/server/delivery/delivery_fixture.h"

namespace quire {
namespace {

enum class Stage { kIntake, kQueued, kPrefill, kDecode };
constexpr const char* kStageNames[] = {"intake", "queue", "prefill", "decode"};

struct Row {
  FinishReason reason;
  absl::StatusCode code;
  const char* error_reason;       // before the first token
  const char* late_error_reason;  // after it
  Outcome outcome;
};

const Row kRows[] = {
    {FinishReason::kStop, absl::StatusCode::kOk, "", "", Outcome::kOk},
    {FinishReason::kLength, absl::StatusCode::kOk, "", "", Outcome::kOk},
    {FinishReason::kTimeLimit, absl::StatusCode::kOk, "", "", Outcome::kOk},
    {FinishReason::kAborted, absl::StatusCode::kOk, "", "", Outcome::kAborted},
    {FinishReason::kCancelled, absl::StatusCode::kCancelled, "", "", Outcome::kCancelled},
    {FinishReason::kDeadline, absl::StatusCode::kDeadlineExceeded, "DEADLINE", "DEADLINE",
     Outcome::kDeadline},
    {FinishReason::kQueueAge, absl::StatusCode::kResourceExhausted, "QUEUE_AGE", "QUEUE_AGE",
     Outcome::kExpired},
    {FinishReason::kSlowReader, absl::StatusCode::kResourceExhausted, "SLOW_READER", "SLOW_READER",
     Outcome::kSlowReader},
    {FinishReason::kShutdown, absl::StatusCode::kUnavailable, "DRAINING", "SHUTDOWN",
     Outcome::kShutdown},
    {FinishReason::kError, absl::StatusCode::kInternal, "NON_FINITE", "NON_FINITE",
     Outcome::kError},
};

class EndMatrix : public testing::TestWithParam<std::tuple<Row, Stage>> {};

std::string MetadataOf(const absl::Status& status, std::string_view key) {
  for (const auto& [name, value] : GetErrorInfo(status).metadata) {
    if (name == key) return value;
  }
  return "";
}

TEST_P(EndMatrix, EndsOnceWithTheRightStatus) {
  const auto& [row, stage] = GetParam();
  DeliveryFixture f;
  const auto sink = f.Open(1, {.stop_strings = {"never"}});
  const auto neighbour = f.Open(2);
  f.Prepare(2);
  if (stage >= Stage::kQueued) f.Prepare(1);
  if (stage >= Stage::kPrefill) f.Admit(1);
  if (stage == Stage::kDecode) f.Say(1, "abn");  // "n" is held for the stop string

  TokenEvent last = DeliveryFixture::Event(1, -1, row.reason);
  if (row.reason == FinishReason::kError) last.outcome = SampleOutcome::kNonFinite;
  if (stage == Stage::kIntake) {
    f.events.Refuse({.id = RequestId{1}, .status = absl::OkStatus(), .reason = row.reason});
    f.inbox.Release(RequestId{1});
  } else {
    f.inbox.Finished(std::vector<RequestId>{RequestId{1}});
    f.Step({last});
  }
  f.Pump();

  ASSERT_EQ(sink->ends().size(), 1u);
  EXPECT_EQ(sink->calls_after_end(), 0);
  const absl::Status end = sink->ends()[0];
  EXPECT_EQ(end.code(), row.code) << end;
  std::string reason = stage == Stage::kDecode ? row.late_error_reason : row.error_reason;
  if (stage == Stage::kIntake && reason == "NON_FINITE")
    reason = "ENGINE_FAULT";  // nothing was computed
  EXPECT_EQ(GetErrorInfo(end).reason, reason);
  if (row.reason == FinishReason::kDeadline) {
    EXPECT_EQ(MetadataOf(end, "stage"), kStageNames[static_cast<int>(stage)]);
    EXPECT_EQ(MetadataOf(end, "generated_tokens"), stage == Stage::kDecode ? "3" : "0");
  }
  const bool ok = row.code == absl::StatusCode::kOk;
  ASSERT_EQ(sink->finished().size(), ok ? 1u : 0u);
  if (ok) {
    EXPECT_EQ(sink->finished()[0].reason, row.reason);
    EXPECT_TRUE(sink->finished()[0].usage.has_value());
  }
  if (stage == Stage::kDecode) {
    EXPECT_EQ(sink->Text(), ok ? "abn" : "ab") << "a failure flushes nothing more";
  }

  const StreamStats stats = f.delivery.Stats();
  uint64_t ended = 0;
  for (const uint64_t n : stats.finished) ended += n;
  const bool accepted = stage != Stage::kIntake;
  EXPECT_EQ(ended, accepted ? 1u : 0u) << "refused requests are counted by the intake";
  if (accepted) {
    EXPECT_EQ(stats.finished[static_cast<size_t>(row.outcome)], 1u);
  }
  EXPECT_EQ(stats.request.count, ended);
  EXPECT_TRUE(neighbour->ends().empty());
  EXPECT_EQ(stats.open, 1);
}

std::string NameOf(const testing::TestParamInfo<EndMatrix::ParamType>& info) {
  static constexpr const char* kNames[] = {"None",       "Stop",     "Length",   "TimeLimit",
                                           "Aborted",    "Deadline", "QueueAge", "Cancelled",
                                           "SlowReader", "Shutdown", "Error"};
  static constexpr const char* kStages[] = {"Intake", "Queued", "Prefill", "Decode"};
  return std::string(kNames[static_cast<size_t>(std::get<0>(info.param).reason)]) +
         kStages[static_cast<size_t>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(All, EndMatrix,
                         testing::Combine(testing::ValuesIn(kRows),
                                          testing::Values(Stage::kIntake, Stage::kQueued,
                                                          Stage::kPrefill, Stage::kDecode)),
                         NameOf);

TEST(EndStatus, OnlyRetriableEndsCarryADelay) {
  for (const FinishReason reason : {FinishReason::kQueueAge, FinishReason::kShutdown}) {
    EXPECT_EQ(GetErrorInfo(FailureStatus({.reason = reason, .retry_delay_ms = 250})).retry_delay_ms,
              250);
  }
  for (const FinishReason reason :
       {FinishReason::kSlowReader, FinishReason::kDeadline, FinishReason::kError}) {
    EXPECT_EQ(GetErrorInfo(FailureStatus({.reason = reason, .retry_delay_ms = 250})).retry_delay_ms,
              -1);
  }
  EXPECT_EQ(GetErrorInfo(FailureStatus({.reason = FinishReason::kShutdown,
                                        .generated_tokens = 1,
                                        .retry_delay_ms = 250}))
                .retry_delay_ms,
            -1);
}

TEST(EndStatus, ErrorsNameTheirCause) {
  const auto reason = [](SampleOutcome outcome) {
    return GetErrorInfo(FailureStatus({.reason = FinishReason::kError, .outcome = outcome})).reason;
  };
  EXPECT_EQ(reason(SampleOutcome::kNonFinite), "NON_FINITE");
  EXPECT_EQ(reason(SampleOutcome::kNoAllowedToken), "NO_ALLOWED_TOKEN");
  EXPECT_EQ(reason(SampleOutcome::kToken), "ENGINE_FAULT");
}

}  // namespace
}  // namespace quire
