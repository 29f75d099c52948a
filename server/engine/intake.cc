#include "server/engine/intake.h"

#include <algorithm>
#include <utility>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"

// Accounting: a call is received when Submit or CountRefused sees it; whoever ends it before the
// scheduler takes it counts the rejection, in the same struct and before the client can know.
// Slots: Submit reserves; Refuse releases, or Inbox::Submit hands on.
namespace quire {
namespace {

absl::Status Draining() {
  return MakeError(
      absl::StatusCode::kUnavailable, "the server is draining",
      {.reason = "DRAINING", .metadata = {}, .violations = {}, .retry_delay_ms = 1000});
}

RejectReason RejectReasonOfEnd(FinishReason reason) {
  switch (reason) {
    case FinishReason::kDeadline:
      return RejectReason::kDeadline;
    case FinishReason::kTimeLimit:
      return RejectReason::kTimeLimit;
    case FinishReason::kCancelled:
      return RejectReason::kCancelled;
    case FinishReason::kAborted:
      return RejectReason::kAborted;
    case FinishReason::kShutdown:
      return RejectReason::kDraining;
    default:
      return RejectReason::kOther;
  }
}

// An item above it may take long. Below, 16 items take no longer than one of the largest.
constexpr size_t kLargeBytes = 16 << 10;
constexpr size_t kSmallTurns = 16;

struct OutputBound {
  int32_t max_tokens;
  LengthBound bound;
};

OutputBound BoundOf(const std::optional<int32_t>& asked, int32_t default_max,
                    const Capacity& capacity) {
  const int32_t wanted = asked.value_or(default_max);
  if (capacity.max_new_tokens < wanted) {
    return {capacity.max_new_tokens,
            capacity.pool_bound ? LengthBound::kPool : LengthBound::kContext};
  }
  return {wanted, asked.has_value() ? LengthBound::kRequest : LengthBound::kDefault};
}

}  // namespace

RequestId NextRequestId() {
  static std::atomic<uint64_t> next{1};
  return RequestId{next.fetch_add(1, std::memory_order_relaxed)};
}

Intake::Intake(IntakeOptions options, const IntakeLinks& links)
    : options_(std::move(options)),
      links_(links),
      admission_({.max_running = options_.max_running,
                  .default_max_tokens = options_.default_max_tokens,
                  .max_queue_ms = options_.max_queue_ms,
                  .by_deadline = options_.deadline_admission},
                 links.inbox, links.clock) {}

Intake::~Intake() { Stop(); }

void Intake::Start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { Loop(); });
}

void Intake::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    draining_ = stopping_ = true;
  }
  RefuseJobs();
  if (thread_.joinable()) thread_.join();
  while (RunOne()) {
  }
}

void Intake::Loop() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &Intake::HasItem));
      if (stopping_) return;  // Stop finishes what waits
    }
    RunOne();
  }
}

absl::Status Intake::Submit(ValidRequest request) {
  absl::MutexLock lock(&mutex_);
  ++stats_.received;
  if (absl::Status let_in = draining_ ? Draining() : admission_.Enter(request); !let_in.ok()) {
    ++stats_.rejected[static_cast<size_t>(RejectReasonOf(GetErrorInfo(let_in).reason))];
    return let_in;
  }
  const size_t bytes = BytesOf(request.prompt);
  Add(std::move(request), bytes);
  return absl::OkStatus();
}

absl::Status Intake::Post(IntakeJob job) {
  absl::MutexLock lock(&mutex_);
  if (draining_) return Draining();
  if (jobs_ >= options_.max_jobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "too many tokenizer calls wait",
                     {.reason = "QUEUE_FULL",
                      .metadata = {{"limit", absl::StrCat(options_.max_jobs)}},
                      .violations = {},
                      .retry_delay_ms = RetryDelayMs()});
  }
  ++jobs_;
  const size_t bytes = job.bytes;
  Add(std::move(job), bytes);
  return absl::OkStatus();
}

void Intake::Add(Item item, size_t bytes) {
  (bytes > kLargeBytes ? large_ : small_).push_back(std::move(item));
}

Intake::Item Intake::TakeNext() {
  const auto take = [](std::deque<Item>& queue) {
    Item item = std::move(queue.front());
    queue.pop_front();
    return item;
  };
  const auto dead = [this](const Item& item) {
    const auto* job = std::get_if<IntakeJob>(&item);
    return job != nullptr ? !JobEnd(*job).ok()
                          : RequestEnd(std::get<ValidRequest>(item)) != FinishReason::kNone;
  };
  if (!large_.empty() && dead(large_.front())) return take(large_);
  if (after_large_) {  // all that came while it ran, so that nothing waits for two
    small_turns_ = std::max(small_.size(), kSmallTurns);
    after_large_ = false;
  }
  if (!small_.empty() && (small_turns_ > 0 || large_.empty())) {
    if (small_turns_ > 0) --small_turns_;
    return take(small_);
  }
  after_large_ = true;
  return take(large_);
}

void Intake::CountRefused(const absl::Status& status) {
  const RejectReason reason = RejectReasonOf(GetErrorInfo(status).reason);
  absl::MutexLock lock(&mutex_);
  ++stats_.received;
  ++stats_.rejected[static_cast<size_t>(reason)];
}

void Intake::StartDraining() {
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
  }
  RefuseJobs();
}

void Intake::RefuseJobs() {
  std::vector<IntakeJob> jobs;
  {
    absl::MutexLock lock(&mutex_);
    for (std::deque<Item>* queue : {&small_, &large_}) {
      for (Item& item : *queue) {
        if (auto* job = std::get_if<IntakeJob>(&item)) jobs.push_back(std::move(*job));
      }
      std::erase_if(*queue, [](const Item& i) { return std::holds_alternative<IntakeJob>(i); });
    }
    jobs_ = 0;
  }
  for (IntakeJob& job : jobs) job.run(Draining());
}

IntakeStats Intake::Stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

bool Intake::RunOne() {
  Item item;
  bool stopping;
  {
    absl::MutexLock lock(&mutex_);
    if (small_.empty() && large_.empty()) return false;
    item = TakeNext();
    stopping = stopping_;
    if (std::holds_alternative<IntakeJob>(item)) --jobs_;
  }
  if (auto* job = std::get_if<IntakeJob>(&item)) {
    job->run(JobEnd(*job));
  } else if (auto& request = std::get<ValidRequest>(item); stopping) {
    Refuse(request.id, absl::OkStatus(), FinishReason::kShutdown);
  } else {
    Prepare(std::move(request));
  }
  return true;
}

void Intake::Refuse(RequestId id, absl::Status status, FinishReason reason) {
  const RejectReason why =
      status.ok() ? RejectReasonOfEnd(reason) : RejectReasonOf(GetErrorInfo(status).reason);
  {
    absl::MutexLock lock(&mutex_);
    ++stats_.rejected[static_cast<size_t>(why)];
  }
  links_.inbox->Release(id);
  links_.events->Refuse({.id = id, .status = std::move(status), .reason = reason});
}

absl::Status Intake::JobEnd(const IntakeJob& job) const {
  if (job.cancelled != nullptr && job.cancelled->load()) {
    return absl::CancelledError("the call was cancelled");
  }
  if (job.deadline > links_.clock->Now()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kDeadlineExceeded, "the deadline passed in intake",
                   {.reason = "DEADLINE", .metadata = {{"stage", "intake"}}, .violations = {}});
}

MonotonicTime Intake::TimeLimitOf(const ValidRequest& request) const {
  const int64_t limit_ms = std::min(request.stop.time_limit_ms.value_or(options_.max_request_ms),
                                    options_.max_request_ms);
  return AddNanos(request.arrival, limit_ms * 1'000'000);
}

FinishReason Intake::RequestEnd(const ValidRequest& request) const {
  const FinishReason aborted = links_.inbox->AbortReason(request.id);
  if (aborted != FinishReason::kNone) return aborted;
  const MonotonicTime time_limit = TimeLimitOf(request);
  if (std::min(time_limit, request.deadline) > links_.clock->Now()) return FinishReason::kNone;
  return time_limit < request.deadline ? FinishReason::kTimeLimit : FinishReason::kDeadline;
}

void Intake::Prepare(ValidRequest request) {
  const RequestId id = request.id;
  if (const FinishReason reason = RequestEnd(request); reason != FinishReason::kNone) {
    return Refuse(id, absl::OkStatus(), reason);
  }
  absl::StatusOr<EncodedPrompt> encoded =
      links_.encoder->Encode(request.prompt, options_.capacity.context_tokens - 1);
  if (!encoded.ok()) return Refuse(id, std::move(encoded).status(), FinishReason::kNone);
  if (encoded->at_least > 0) {
    return Refuse(
        id,
        PromptTooLong(encoded->at_least, Capacity{.verdict = CapacityVerdict::kPromptBeyondContext},
                      options_.capacity, false),
        FinishReason::kNone);
  }
  const std::vector<TokenSpan>& spans = encoded->tokens;
  const Capacity capacity =
      CapacityOf(static_cast<int64_t>(spans.size()), options_.capacity, request.kv);
  if (capacity.verdict != CapacityVerdict::kFits) {
    return Refuse(id,
                  PromptTooLong(static_cast<int64_t>(spans.size()), capacity, options_.capacity),
                  FinishReason::kNone);
  }

  Request out;
  out.id = id;
  out.prompt.reserve(spans.size());
  for (const TokenSpan& span : spans) {
    const auto token = static_cast<int32_t>(span.id);
    if (!(token >= 0 && token < options_.vocab_size)) {
      return Refuse(
          id,
          InvalidField(absl::StrCat("prompt.tokens.ids[", out.prompt.size(), "]"),
                       absl::StrCat("got ", token, ", the vocabulary has ", options_.vocab_size)),
          FinishReason::kNone);
    }
    out.prompt.push_back(span.id);
  }
  if (absl::Status room = admission_.Count(request, static_cast<int64_t>(spans.size()));
      !room.ok()) {
    return Refuse(id, std::move(room), FinishReason::kNone);
  }
  const OutputBound bound = BoundOf(request.stop.max_tokens, options_.default_max_tokens, capacity);
  out.sampling = request.sampling;
  out.stop = {.max_tokens = bound.max_tokens,
              .min_tokens = request.stop.min_tokens,
              .ignore_eos = request.stop.ignore_eos,
              .eos_ids = options_.eos_ids,
              .stop_ids = std::move(request.stop.stop_token_ids)};
  out.num_sequences = request.num_sequences;
  out.priority = request.priority;
  out.tenant = request.tenant;
  out.cache_domain = request.cache_domain;
  out.kv = request.kv;
  out.cache_bypass = request.cache_bypass;
  out.arrival = request.arrival;
  out.deadline = request.deadline;
  out.time_limit = TimeLimitOf(request);
  links_.events->Prepare({.id = id,
                          .prompt_tokens = static_cast<int32_t>(spans.size()),
                          .length_bound = bound.bound,
                          .at = links_.clock->Now()});
  links_.inbox->Submit(std::move(out));
}

}  // namespace quire
