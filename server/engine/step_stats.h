// Plain numbers about requests, steps and the cache, and how a reader gets one consistent snapshot.
// The intake and the engine each publish their own struct; a reader loads downstream first
// (delivery, engine, intake), so that differences such as `received - accepted - rejected` are
// exact and never negative.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/histogram.h"
#include "scheduler/service_estimate.h"

namespace quire {

// Why a call was refused before it was accepted; the label `reason` of requests_rejected_total.
enum class RejectReason : uint8_t {
  kFieldInvalid,
  kFieldConflict,
  kFieldUnsupported,
  kFieldUnknown,
  kPromptEmpty,
  kPromptTooLong,
  kPromptBytes,
  kKvPoolTooSmall,
  kTemplateFailed,
  kNoChatTemplate,
  kModelNotFound,
  kRequestIdLive,
  kResponseTooLarge,
  kQueueFull,
  kQueueTokensFull,
  kQueueAge,
  kCallsFull,
  kLoading,
  kDraining,
  kStalled,
  kDeadline,
  kTimeLimit,
  kCancelled,
  kAborted,
  kOther,
};
inline constexpr size_t kRejectReasons = static_cast<size_t>(RejectReason::kOther) + 1;
// The label, which is also the ErrorInfo reason: "QUEUE_FULL".
std::string_view RejectReasonName(RejectReason reason);
// kOther for a reason that has no label of its own.
RejectReason RejectReasonOf(std::string_view error_info_reason);

using RejectCounts = std::array<uint64_t, kRejectReasons>;

// Published by the intake.
struct IntakeStats {
  uint64_t received = 0;    // calls that ask for inference, refused ones included
  RejectCounts rejected{};  // by validation and by intake
};

enum class StepPhase : uint8_t { kPrefill, kDecode, kMixed };
inline constexpr std::array<std::string_view, 3> kStepPhaseNames = {"prefill", "decode", "mixed"};
enum class StepStage : uint8_t { kSchedule, kBuild, kForward, kSample, kCommit, kPublish };
inline constexpr std::array<std::string_view, 6> kStepStageNames = {
    "schedule", "build", "forward", "sample", "commit", "publish"};
enum class SequenceEnd : uint8_t { kStop, kLength, kTimeLimit, kAborted, kError };
inline constexpr std::array<std::string_view, 5> kSequenceEndNames = {
    "stop", "length", "time_limit", "aborted", "error"};
// What a sequence lost its blocks for: growth of another, a higher priority, its slow reader.
inline constexpr std::array<std::string_view, 3> kPreemptionCauseNames = {"blocks", "priority",
                                                                          "paused"};

// Published by the engine thread once per step, after Commit and before the step's events.
struct StepStats {
  uint64_t step = 0;                 // steps that computed something
  uint64_t accepted = 0;             // requests the scheduler took
  int32_t running = 0, waiting = 0;  // sequences
  int64_t waiting_tokens = 0;        // uncomputed prompt tokens of waiting sequences
  int64_t prompt_backlog = 0;        // of running ones, with what they compute again
  int32_t blocks_total = 0, blocks_used = 0, blocks_cached = 0, blocks_free = 0;
  uint64_t sequences_started = 0;
  std::array<uint64_t, kSequenceEndNames.size()> sequences_finished{};
  std::array<uint64_t, kPreemptionCauseNames.size()> preemptions{};
  uint64_t prefix_query_tokens = 0, prefix_hit_tokens = 0, block_evictions = 0;
  uint64_t prefill_tokens = 0, recompute_tokens = 0, decode_tokens = 0;  // rows computed
  ServiceRates rates{};
  uint64_t audits_ok = 0, audits_failed = 0;  // of the books, when idle
  std::array<double, kStepStageNames.size()> stage_seconds{};
  std::array<Histogram<kStepBounds>, kStepPhaseNames.size()> step_seconds{};
  Histogram<kPowerBounds> step_tokens{}, step_sequences{};
};

uint64_t SumOf(const RejectCounts& counts);

}  // namespace quire
