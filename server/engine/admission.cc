#include "server/engine/admission.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"
#include "server/engine/retry_delay.h"

namespace quire {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;

// Tokens that an output cannot do without: all, if nothing but their number ends it.
int64_t CertainTokens(const ValidRequest& request, int32_t default_max_tokens) {
  const StopOptions& stop = request.stop;
  if (stop.ignore_eos && stop.stop_strings.empty() && stop.stop_token_ids.empty()) {
    return stop.max_tokens.value_or(default_max_tokens);
  }
  return std::max(1, stop.min_tokens);
}

struct Verdict {
  absl::StatusCode code;
  const char* reason;
  int64_t retry_ms;
};

absl::Status TooLate(const Verdict& verdict, int64_t estimate_ns, int64_t left_ns) {
  const std::string estimate = absl::StrCat(estimate_ns / kNanosPerMilli);
  const std::string left = absl::StrCat(left_ns / kNanosPerMilli);
  return MakeError(
      verdict.code,
      absl::StrCat("it would take about ", estimate, " ms from now, of at most ", left),
      {.reason = verdict.reason,
       .metadata = {{"stage", "admission"}, {"estimate_ms", estimate}, {"limit_ms", left}},
       .violations = {},
       .retry_delay_ms = verdict.retry_ms});
}

}  // namespace

int64_t LeastTokens(const PromptSource& prompt) {
  const auto* ids = std::get_if<std::vector<TokenId>>(&prompt.source);
  if (ids == nullptr) return 1;
  const auto count = static_cast<int64_t>(ids->size());
  return std::max<int64_t>(1,
                           std::min<int64_t>(count, prompt.truncate_to_tokens.value_or(INT32_MAX)));
}

absl::Status Admission::Full(Room room) const {
  const bool sequences = room == Room::kNoSequences;
  const int64_t limit = sequences ? inbox_->limits().sequences : inbox_->limits().waiting_tokens;
  const std::string what =
      sequences ? absl::StrCat("the server is full: at most ", limit,
                               " sequences run or wait (max_running ", options_.max_running,
                               " + max_waiting ", limit - options_.max_running, ")")
                : absl::StrCat("the queue is full: at most ", limit, " prompt tokens wait");
  return MakeError(absl::StatusCode::kResourceExhausted, what,
                   {.reason = sequences ? "QUEUE_FULL" : "QUEUE_TOKENS_FULL",
                    .metadata = {{"limit", absl::StrCat(limit)}},
                    .violations = {},
                    .retry_delay_ms = RetryDelayMs()});
}

absl::Status Admission::Enter(const ValidRequest& request) {
  const int64_t tokens = LeastTokens(request.prompt);
  if (absl::Status late = CheckDeadline(request, tokens, {}); !late.ok()) return late;
  const Room room = inbox_->Reserve(request.id, request.num_sequences, tokens);
  return room == Room::kTaken ? absl::OkStatus() : Full(room);
}

absl::Status Admission::Count(const ValidRequest& request, int64_t prompt_tokens) {
  // What it has reserved itself is not ahead of it.
  const Reserved own = {.sequences = request.num_sequences, .tokens = LeastTokens(request.prompt)};
  if (absl::Status late = CheckDeadline(request, prompt_tokens, own); !late.ok()) return late;
  return inbox_->ReserveTokens(request.id, prompt_tokens) ? absl::OkStatus()
                                                          : Full(Room::kNoTokens);
}

absl::Status Admission::CheckDeadline(const ValidRequest& request, int64_t prompt_tokens,
                                      const Reserved& own) const {
  if (!options_.by_deadline) return absl::OkStatus();
  const Load load = load_.Load();
  const int64_t output = CertainTokens(request, options_.default_max_tokens);
  const ServiceEstimate alone =
      EstimateService({.free_places = 1}, load.rates, prompt_tokens, output);
  if (!alone.known) return absl::OkStatus();
  const int64_t left = request.deadline == MonotonicTime::kInfinite
                           ? INT64_MAX
                           : Nanos(request.deadline) - Nanos(clock_->Now());
  if (alone.end_ns > left) {
    return TooLate({absl::StatusCode::kDeadlineExceeded, "DEADLINE", -1}, alone.end_ns, left);
  }
  // The estimate goes by arrival; who is ahead of his turn is not held back by it.
  if (request.priority > 0) return absl::OkStatus();
  const int64_t waiting = inbox_->reserved_sequences() - own.sequences - load.running;
  const int64_t tokens = inbox_->waiting_tokens() - own.tokens + load.prompt_backlog;
  const ServiceLoad ahead = {.tokens_ahead = std::max<int64_t>(0, tokens),
                             .waiting_ahead = static_cast<int32_t>(std::max<int64_t>(0, waiting)),
                             .free_places = std::max(0, options_.max_running - load.running)};
  const ServiceEstimate queued = EstimateService(ahead, load.rates, prompt_tokens, output);
  const int64_t wait = queued.first_token_ns - alone.first_token_ns;
  const int64_t most = options_.max_queue_ms * kNanosPerMilli;
  if (queued.end_ns <= left && wait <= most) return absl::OkStatus();
  return TooLate({absl::StatusCode::kResourceExhausted, "QUEUE_AGE", RetryDelayMs()}, queued.end_ns,
                 wait > most ? most : left);
}

void Admission::SetLoad(const StepStats& stats) {
  load_.Store(
      {.running = stats.running, .prompt_backlog = stats.prompt_backlog, .rates = stats.rates});
}

int64_t Admission::RetryDelayMs() const {
  thread_local absl::BitGen random;
  const Load load = load_.Load();
  return quire::RetryDelayMs(inbox_->waiting_tokens() + load.prompt_backlog, load.rates,
                             absl::Uniform<double>(random, 0.0, 1.0));
}

}  // namespace quire
