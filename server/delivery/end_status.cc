#include "server/delivery/end_status.h"

#include <string>
#include <utility>

#include "absl/log/log.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"

namespace quire {
namespace {

using Code = absl::StatusCode;

absl::Status Internal(SampleOutcome outcome) {
  switch (outcome) {
    case SampleOutcome::kNonFinite:
      return MakeError(Code::kInternal, "the model gave a value that is not finite",
                       {.reason = "NON_FINITE", .metadata = {}, .violations = {}});
    case SampleOutcome::kNoAllowedToken:
      return MakeError(Code::kInternal, "no token was allowed",
                       {.reason = "NO_ALLOWED_TOKEN", .metadata = {}, .violations = {}});
    case SampleOutcome::kToken:
      break;
  }
  return MakeError(Code::kInternal, "the engine failed",
                   {.reason = "ENGINE_FAULT", .metadata = {}, .violations = {}});
}

}  // namespace

bool EndsOk(FinishReason reason) {
  return reason == FinishReason::kStop || reason == FinishReason::kLength ||
         reason == FinishReason::kTimeLimit || reason == FinishReason::kAborted;
}

absl::Status FailureStatus(const FailureFacts& facts) {
  const std::pair<std::string, std::string> generated = {"generated_tokens",
                                                         absl::StrCat(facts.generated_tokens)};
  switch (facts.reason) {
    case FinishReason::kDeadline:
      return MakeError(Code::kDeadlineExceeded,
                       absl::StrCat("the deadline passed in ", std::string(facts.stage)),
                       {.reason = "DEADLINE",
                        .metadata = {{"stage", std::string(facts.stage)}, generated},
                        .violations = {}});
    case FinishReason::kQueueAge:
      return MakeError(Code::kResourceExhausted, "the request waited too long in the queue",
                       {.reason = "QUEUE_AGE",
                        .metadata = {},
                        .violations = {},
                        .retry_delay_ms = facts.retry_delay_ms});
    case FinishReason::kCancelled:
      return absl::CancelledError("the call was cancelled");
    case FinishReason::kSlowReader:
      return MakeError(Code::kResourceExhausted, "the client did not read its stream",
                       {.reason = "SLOW_READER", .metadata = {generated}, .violations = {}});
    case FinishReason::kShutdown:
      if (facts.generated_tokens == 0) {
        return MakeError(Code::kUnavailable, "the server is draining",
                         {.reason = "DRAINING",
                          .metadata = {},
                          .violations = {},
                          .retry_delay_ms = facts.retry_delay_ms});
      }
      return MakeError(Code::kUnavailable, "the server shut down before the end",
                       {.reason = "SHUTDOWN", .metadata = {generated}, .violations = {}});
    case FinishReason::kError:
      return Internal(facts.outcome);
    default:
      LOG(FATAL) << "not a failure: " << static_cast<int>(facts.reason);
  }
}

std::string_view EndName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kTimeLimit:
      return "time_limit";
    case FinishReason::kAborted:
      return "aborted";
    default:
      return "";
  }
}

Outcome OutcomeOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
    case FinishReason::kLength:
    case FinishReason::kTimeLimit:
      return Outcome::kOk;
    case FinishReason::kAborted:
      return Outcome::kAborted;
    case FinishReason::kCancelled:
      return Outcome::kCancelled;
    case FinishReason::kDeadline:
      return Outcome::kDeadline;
    case FinishReason::kQueueAge:
      return Outcome::kExpired;
    case FinishReason::kSlowReader:
      return Outcome::kSlowReader;
    case FinishReason::kShutdown:
      return Outcome::kShutdown;
    case FinishReason::kError:
    case FinishReason::kNone:
      break;
  }
  return Outcome::kError;
}

}  // namespace quire
