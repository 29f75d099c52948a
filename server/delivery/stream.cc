#include "server/delivery/stream.h"

#include <algorithm>
#include <utility>

#include "absl/log/check.h"
#include "runtime/base/error_info.h"
#include "server/delivery/end_status.h"

// Time zero means "never": the clock starts long before. The client's view (open_outputs_) and the
// engine's (open_sequences_) end apart: a stop string ends the first, the engine's last event the
// second.
namespace quire {
namespace {

constexpr int64_t kDeltaBytes = 512 << 10;  // soft bound of a delta; a message is at most 1 MiB
constexpr MonotonicTime kNever{};

int64_t Micros(MonotonicTime from, MonotonicTime to) {
  return from == kNever || to < from ? 0 : (Nanos(to) - Nanos(from)) / 1000;
}
MonotonicTime Or(MonotonicTime time, MonotonicTime otherwise) {
  return time == kNever ? otherwise : time;
}

bool Contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::ranges::find(ids, id) != ids.end();
}

}  // namespace

Stream::Stream(StreamSpec spec, std::shared_ptr<ResponseSink> sink, StreamContext* context)
    : spec_(std::move(spec)),
      sink_(std::move(sink)),
      context_(context),
      open_outputs_(spec_.num_sequences),
      open_sequences_(spec_.num_sequences) {
  outputs_.reserve(static_cast<size_t>(spec_.num_sequences));
  for (int32_t i = 0; i < spec_.num_sequences; ++i) outputs_.emplace_back(spec_.stop_strings);
}

void Stream::OnPrepared(const RequestPrepared& prepared) {
  prompt_tokens_ = prepared.prompt_tokens;
  length_bound_ = prepared.length_bound;
  prepared_ = prepared.at;
}

void Stream::OnRefused(RequestRefused refused, MonotonicTime now) {
  accepted_ = false;
  open_sequences_ = 0;
  if (!refused.status.ok()) return FailWith(std::move(refused.status), refused.reason, now);
  if (!EndsOk(refused.reason)) return Fail(refused.reason, now);
  for (int32_t i = 0; i < spec_.num_sequences; ++i)
    FinishOutput(i, {.reason = refused.reason}, now);
}

void Stream::OnAdmitted(const SequenceAdmitted& admitted) {
  if (outputs_.front().admitted == kNever) cached_prompt_tokens_ = admitted.cached_tokens;
  Output& output = outputs_[static_cast<size_t>(admitted.sequence.output_index)];
  if (output.admitted == kNever) output.admitted = admitted.at;
}

void Stream::OnToken(const TokenEvent& event, MonotonicTime at, MonotonicTime now) {
  const int32_t index = event.sequence.output_index;
  Output& output = outputs_[static_cast<size_t>(index)];
  if (event.finish != FinishReason::kNone) {
    --open_sequences_;
    output.compute_ended = true;
  }
  output.preemptions = std::max(output.preemptions, event.preemptions);
  if (ended() || output.finished) {
    if (event.token == TokenId::kNone) return;
    ++(stopped_by_text_ ? context_->stats->discarded_stop_lag : context_->stats->discarded_ended);
    return;
  }
  if (event.token == TokenId::kNone) return EndByEvent(index, event, now);

  CountToken(output, at, now);
  if (event.finish == FinishReason::kStop && !spec_.keep_stop) {
    output.text.AddUnlisted();
    return EndByEvent(index, event, now);
  }
  const bool armed = event.finish != FinishReason::kStop && output.tokens >= spec_.min_tokens;
  const std::optional<StopMatch> match = output.text.Add(
      MakeToken(event), context_->tokenizer->Piece(event.token), armed, spec_.keep_stop);
  if (match.has_value()) {
    stopped_by_text_ = true;
    return FinishOutput(index,
                        {.reason = FinishReason::kStop,
                         .matched = MatchedStop::kStopString,
                         .matched_value = static_cast<uint32_t>(match->index)},
                        now);
  }
  if (event.finish != FinishReason::kNone) return EndByEvent(index, event, now);
  SendReady(index, false);
}

void Stream::CountToken(Output& output, MonotonicTime at, MonotonicTime now) {
  StreamStats& stats = *context_->stats;
  ++output.tokens;
  ++stats.generation_tokens;
  if (output.tokens == 1) {
    ++stats.sequences_with_token;
    output.first_token = at;
    if (first_token_ == kNever) {
      first_token_ = at;
      ++stats.requests_with_token;
      stats.prompt_tokens += static_cast<uint64_t>(prompt_tokens_);
      stats.cached_prompt_tokens += static_cast<uint64_t>(cached_prompt_tokens_);
      stats.time_to_first_token.Observe(SecondsBetween(spec_.arrival, now));
    }
  } else {
    stats.inter_token.Observe(SecondsBetween(output.last_token, at));
  }
  output.last_token = at;
}

OutToken Stream::MakeToken(const TokenEvent& event) const {
  OutToken token;
  if (!spec_.tokens) return token;
  token.id = event.token;
  token.piece = context_->tokenizer->Piece(event.token);
  if (!spec_.logprobs) return token;
  token.logprob = event.logprob;
  token.rank = event.rank;
  token.top.reserve(static_cast<size_t>(event.top_count));
  for (int32_t i = 0; i < event.top_count; ++i) {
    const TopLogprob& top = event.top[static_cast<size_t>(i)];
    token.top.push_back({.id = top.token,
                         .piece = std::string(context_->tokenizer->Piece(top.token)),
                         .logprob = top.logprob});
  }
  return token;
}

void Stream::SendReady(int32_t index, bool last) {
  OutputText& text = outputs_[static_cast<size_t>(index)].text;
  if (!last && spec_.final_only) return;
  const int32_t least = last ? 1 : spec_.tokens_per_message;
  while (text.ready() >= least) {
    OutDelta delta = text.Take(kDeltaBytes);
    delta.output_index = index;
    if (!spec_.text) delta.text.clear();
    if (!spec_.tokens) delta.tokens.clear();
    if (delta.text.empty() && delta.tokens.empty()) continue;
    sink_->OnDelta(std::move(delta));
    wrote_ = true;
  }
}

void Stream::EndByEvent(int32_t index, const TokenEvent& event, MonotonicTime now) {
  if (!EndsOk(event.finish)) {
    const FailureFacts facts = {.reason = event.finish,
                                .outcome = event.outcome,
                                .stage = Stage(),
                                .generated_tokens = generated_tokens(),
                                .retry_delay_ms = context_->retry_delay_ms()};
    return FailWith(FailureStatus(facts), event.finish, now);
  }
  OutFinished finished = {.reason = event.finish};
  if (event.finish == FinishReason::kLength) finished.length_bound = length_bound_;
  if (event.finish == FinishReason::kStop && event.token != TokenId::kNone) {
    const bool asked = Contains(spec_.stop_token_ids, event.token);
    const bool eos = Contains(context_->tokenizer->eos_ids(), event.token);
    finished.matched = eos || !asked ? MatchedStop::kEos : MatchedStop::kStopToken;
    finished.matched_value = static_cast<uint32_t>(event.token);
  }
  FinishOutput(index, finished, now);
}

void Stream::FinishOutput(int32_t index, OutFinished finished, MonotonicTime now) {
  Output& output = outputs_[static_cast<size_t>(index)];
  CHECK(!output.finished);
  output.text.Finish();
  SendReady(index, true);
  output.finished = true;
  --open_outputs_;
  if (accepted_) context_->stats->generation.Observe(static_cast<double>(output.tokens));
  finished.output_index = index;
  finished.seed = spec_.seed;
  finished.timing = TimingOf(output, now);
  if (open_outputs_ == 0) {
    finished.usage = UsageNow();
  }
  const FinishReason reason = finished.reason;
  sink_->OnFinished(finished);
  wrote_ = true;
  if (open_outputs_ > 0) {
    if (!output.compute_ended) ends_ |= uint64_t{1} << index;
    return;
  }
  if (open_sequences_ > 0) abort_ = reason;
  End(absl::OkStatus(), reason, now);
}

void Stream::Fail(FinishReason reason, MonotonicTime now) {
  if (ended()) return;
  const FailureFacts facts = {.reason = reason,
                              .stage = Stage(),
                              .generated_tokens = generated_tokens(),
                              .retry_delay_ms = context_->retry_delay_ms()};
  FailWith(FailureStatus(facts), reason, now);
}

void Stream::FailWith(absl::Status status, FinishReason reason, MonotonicTime now) {
  CHECK(!status.ok());
  if (open_sequences_ > 0) abort_ = reason;
  for (const Output& output : outputs_) {
    if (!output.finished && accepted_)
      context_->stats->generation.Observe(static_cast<double>(output.tokens));
  }
  End(std::move(status), reason, now);
}

void Stream::End(absl::Status status, FinishReason reason, MonotonicTime now) {
  CHECK(sink_ != nullptr) << "a stream ends once";
  if (context_->log) Log(status, reason, now);
  if (accepted_) {
    StreamStats& stats = *context_->stats;
    ++stats.finished[static_cast<size_t>(OutcomeOf(reason))];
    const Output& first = outputs_.front();
    stats.request.Observe(SecondsBetween(spec_.arrival, now));
    stats.intake.Observe(SecondsBetween(spec_.arrival, Or(prepared_, now)));
    stats.queue.Observe(SecondsBetween(Or(prepared_, now), Or(first.admitted, now)));
    stats.prompt.Observe(prompt_tokens_);
    if (first.admitted != kNever) {
      stats.prefill.Observe(SecondsBetween(first.admitted, Or(first.first_token, now)));
    }
    if (first.first_token != kNever) stats.decode.Observe(SecondsBetween(first.first_token, now));
    for (const Output& output : outputs_) {
      if (output.tokens < 2) continue;
      stats.time_per_output_token.Observe(SecondsBetween(output.first_token, output.last_token) /
                                          static_cast<double>(output.tokens - 1));
    }
  }
  context_->ends.push_back({.sink = std::move(sink_), .status = std::move(status)});
  sink_.reset();
  wrote_ = true;
}

OutUsage Stream::UsageNow() const {
  OutUsage usage = {.prompt_tokens = prompt_tokens_, .cached_prompt_tokens = cached_prompt_tokens_};
  for (const Output& output : outputs_) {
    usage.completion_tokens += output.text.listed_tokens();
    usage.stop_tokens += output.text.stop_tokens();
  }
  return usage;
}

void Stream::Log(const absl::Status& status, FinishReason reason, MonotonicTime now) const {
  RequestRecord record = {.request_id = spec_.name,
                          .tenant = spec_.tenant,
                          .code = status.code(),
                          .outputs = spec_.num_sequences,
                          .usage = UsageNow(),
                          .timing = TimingOf(outputs_.front(), now),
                          .duration_us = Micros(spec_.arrival, now)};
  record.reason = status.ok() ? std::string(EndName(reason)) : GetErrorInfo(status).reason;
  record.timing.preemptions = 0;
  for (const Output& output : outputs_) record.timing.preemptions += output.preemptions;
  context_->log(record);
}

FinishReason Stream::TakeAbort() { return std::exchange(abort_, FinishReason::kNone); }

uint64_t Stream::TakeEnds() { return std::exchange(ends_, 0); }

bool Stream::TakeWrote() { return std::exchange(wrote_, false); }

OutTiming Stream::TimingOf(const Output& output, MonotonicTime now) const {
  const MonotonicTime prepared = Or(prepared_, now);
  // An output that forked from another after the prompt was admitted with it.
  const MonotonicTime admitted = Or(Or(output.admitted, outputs_.front().admitted), now);
  const MonotonicTime first = Or(output.first_token, now);
  return {.intake_us = Micros(spec_.arrival, prepared),
          .queue_us = Micros(prepared, admitted),
          .prefill_us = Micros(admitted, first),
          .decode_us = Micros(first, now),
          .preemptions = output.preemptions};
}

std::string_view Stream::Stage() const {
  if (prepared_ == kNever) return "intake";
  if (outputs_.front().admitted == kNever) return "queue";
  return first_token_ == kNever ? "prefill" : "decode";
}

int64_t Stream::generated_tokens() const {
  int64_t sum = 0;
  for (const Output& output : outputs_) sum += output.tokens;
  return sum;
}

}  // namespace quire
