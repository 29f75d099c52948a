#include "server/engine/step_stats.h"

#include <numeric>

namespace quire {
namespace {

constexpr std::array<std::string_view, kRejectReasons> kNames = {"FIELD_INVALID",
                                                                 "FIELD_CONFLICT",
                                                                 "FIELD_UNSUPPORTED",
                                                                 "FIELD_UNKNOWN",
                                                                 "PROMPT_EMPTY",
                                                                 "PROMPT_TOO_LONG",
                                                                 "PROMPT_BYTES",
                                                                 "KV_POOL_TOO_SMALL",
                                                                 "TEMPLATE_FAILED",
                                                                 "NO_CHAT_TEMPLATE",
                                                                 "MODEL_NOT_FOUND",
                                                                 "REQUEST_ID_LIVE",
                                                                 "RESPONSE_TOO_LARGE",
                                                                 "QUEUE_FULL",
                                                                 "QUEUE_TOKENS_FULL",
                                                                 "QUEUE_AGE",
                                                                 "CALLS_FULL",
                                                                 "LOADING",
                                                                 "DRAINING",
                                                                 "STALLED",
                                                                 "DEADLINE",
                                                                 "TIME_LIMIT",
                                                                 "CANCELLED",
                                                                 "ABORTED",
                                                                 "OTHER"};

}  // namespace

std::string_view RejectReasonName(RejectReason reason) {
  return kNames[static_cast<size_t>(reason)];
}

RejectReason RejectReasonOf(std::string_view error_info_reason) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == error_info_reason) return static_cast<RejectReason>(i);
  }
  return RejectReason::kOther;
}

uint64_t SumOf(const RejectCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

}  // namespace quire
