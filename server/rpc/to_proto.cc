#include "server/rpc/to_proto.h"

#include <utility>

namespace quire {
namespace {

v1::FinishReason ReasonOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
    case FinishReason::kTimeLimit:
      return v1::FINISH_REASON_TIME_LIMIT;
    case FinishReason::kAborted:
      return v1::FINISH_REASON_ABORTED;
    default:
      return v1::FINISH_REASON_UNSPECIFIED;  // ends with a status instead
  }
}

v1::LengthBound BoundOf(LengthBound bound) {
  switch (bound) {
    case LengthBound::kNone:
      return v1::LENGTH_BOUND_UNSPECIFIED;
    case LengthBound::kRequest:
      return v1::LENGTH_BOUND_REQUEST;
    case LengthBound::kDefault:
      return v1::LENGTH_BOUND_DEFAULT;
    case LengthBound::kContext:
      return v1::LENGTH_BOUND_CONTEXT;
    case LengthBound::kPool:
      return v1::LENGTH_BOUND_POOL;
  }
  return v1::LENGTH_BOUND_UNSPECIFIED;
}

void SetMatched(const OutFinished& finished, v1::Finished* out) {
  switch (finished.matched) {
    case MatchedStop::kNone:
      break;
    case MatchedStop::kEos:
      out->set_eos_token_id(finished.matched_value);
      break;
    case MatchedStop::kStopToken:
      out->set_stop_token_id(finished.matched_value);
      break;
    case MatchedStop::kStopString:
      out->set_stop_string_index(finished.matched_value);
      break;
  }
}

}  // namespace

void ToProto(OutToken token, v1::TokenInfo* out) {
  out->set_id(static_cast<uint32_t>(token.id));
  out->set_piece(std::move(token.piece));
  if (token.logprob.has_value()) out->set_logprob(*token.logprob);
  if (token.rank.has_value()) out->set_rank(static_cast<uint32_t>(*token.rank));
  for (OutCandidate& candidate : token.top) {
    v1::Candidate* top = out->add_top();
    top->set_id(static_cast<uint32_t>(candidate.id));
    top->set_piece(std::move(candidate.piece));
    top->set_logprob(candidate.logprob);
  }
  if (token.visible_bytes.has_value())
    out->set_visible_bytes(static_cast<uint32_t>(*token.visible_bytes));
}

void ToProto(const OutFinished& finished, v1::GenerateResponse* out) {
  v1::Finished* f = out->mutable_finished();
  f->set_output_index(static_cast<uint32_t>(finished.output_index));
  f->set_reason(ReasonOf(finished.reason));
  f->set_length_bound(BoundOf(finished.length_bound));
  SetMatched(finished, f);
  f->set_seed(finished.seed);
  v1::Timing* timing = f->mutable_timing();
  timing->set_intake_us(static_cast<uint64_t>(finished.timing.intake_us));
  timing->set_queue_us(static_cast<uint64_t>(finished.timing.queue_us));
  timing->set_prefill_us(static_cast<uint64_t>(finished.timing.prefill_us));
  timing->set_decode_us(static_cast<uint64_t>(finished.timing.decode_us));
  timing->set_preemptions(static_cast<uint32_t>(finished.timing.preemptions));
  if (!finished.usage.has_value()) return;
  v1::Usage* usage = out->mutable_usage();
  usage->set_prompt_tokens(static_cast<uint32_t>(finished.usage->prompt_tokens));
  usage->set_cached_prompt_tokens(static_cast<uint32_t>(finished.usage->cached_prompt_tokens));
  usage->set_completion_tokens(static_cast<uint32_t>(finished.usage->completion_tokens));
  usage->set_stop_tokens(static_cast<uint32_t>(finished.usage->stop_tokens));
}

}  // namespace quire
