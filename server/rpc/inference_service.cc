#include "server/rpc/inference_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/utf8.h"
#include "server/rpc/validate.h"

namespace quire {
namespace {

constexpr size_t kMaxUnaryBytes = 3 << 20;  // clients take 4 MiB by default

absl::Status CheckReplySize(size_t bytes) {
  if (bytes <= kMaxUnaryBytes) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the reply would be about ", bytes, " bytes, more than ", kMaxUnaryBytes),
      {.reason = "RESPONSE_TOO_LARGE",
       .metadata = {{"actual", absl::StrCat(bytes)}, {"limit", absl::StrCat(kMaxUnaryBytes)}},
       .violations = {}});
}

absl::Status TokenizeNow(const Backend& backend, const PromptSource& prompt, bool count_only,
                         v1::TokenizeResponse* response) {
  ASSIGN_OR_RETURN(EncodedPrompt encoded, backend.encoder->Encode(prompt));
  response->set_token_count(static_cast<uint32_t>(encoded.tokens.size()));
  if (count_only) return absl::OkStatus();
  size_t bytes = encoded.rendered.size();
  for (const TokenSpan& span : encoded.tokens)
    bytes += 20 + backend.tokenizer->Piece(span.id).size();
  RETURN_IF_ERROR(CheckReplySize(bytes));
  for (const TokenSpan& span : encoded.tokens) {
    v1::TokenSpan* out = response->add_tokens();
    out->set_id(static_cast<uint32_t>(span.id));
    out->set_piece(std::string(backend.tokenizer->Piece(span.id)));
    out->set_begin_byte(static_cast<uint32_t>(span.begin_byte));
    out->set_end_byte(static_cast<uint32_t>(span.end_byte));
    out->set_special(span.special);
  }
  response->set_rendered_prompt(std::move(encoded.rendered));
  return absl::OkStatus();
}

absl::Status DetokenizeNow(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                           bool skip_special, v1::DetokenizeResponse* response) {
  std::string raw;
  for (const TokenId id : ids) {
    if (!tokenizer.IsControl(id)) {
      raw += tokenizer.Piece(id);
    } else if (!skip_special) {
      raw += tokenizer.Spelling(id);
    }
    RETURN_IF_ERROR(CheckReplySize(2 * raw.size()));
  }
  AppendUtf8(raw, *response->mutable_text());
  RETURN_IF_ERROR(CheckReplySize(raw.size() + response->text().size()));
  response->set_raw(std::move(raw));
  return absl::OkStatus();
}

}  // namespace

void Tokenize(RpcCore& core, const v1::TokenizeRequest& request, v1::TokenizeResponse* response,
              const CallLife& life, Done done) {
  const absl::StatusOr<const Backend*> backend = core.Ready();
  if (!backend.ok()) return done(backend.status());
  absl::StatusOr<PromptSource> prompt = ValidateTokenize(request, (*backend)->request_limits);
  if (!prompt.ok()) return done(prompt.status());
  const size_t bytes = BytesOf(*prompt);
  auto run = [&backend = **backend, prompt = *std::move(prompt), count_only = request.count_only(),
              response, done](const absl::Status& end) {
    done(end.ok() ? TokenizeNow(backend, prompt, count_only, response) : end);
  };
  const absl::Status posted = (*backend)->intake->Post({.bytes = bytes,
                                                        .deadline = life.deadline,
                                                        .cancelled = life.cancelled,
                                                        .run = std::move(run)});
  if (!posted.ok()) done(posted);
}

void Detokenize(RpcCore& core, const v1::DetokenizeRequest& request,
                v1::DetokenizeResponse* response, const CallLife& life, Done done) {
  const absl::StatusOr<const Backend*> backend = core.Ready();
  if (!backend.ok()) return done(backend.status());
  absl::StatusOr<std::vector<TokenId>> ids =
      ValidateDetokenize(request, (*backend)->request_limits);
  if (!ids.ok()) return done(ids.status());
  const size_t bytes = ids->size();
  auto run = [&tokenizer = *(*backend)->tokenizer, ids = *std::move(ids),
              skip_special = request.skip_special_tokens(), response,
              done](const absl::Status& end) {
    done(end.ok() ? DetokenizeNow(tokenizer, ids, skip_special, response) : end);
  };
  const absl::Status posted = (*backend)->intake->Post({.bytes = bytes,
                                                        .deadline = life.deadline,
                                                        .cancelled = life.cancelled,
                                                        .run = std::move(run)});
  if (!posted.ok()) done(posted);
}

absl::Status Abort(RpcCore& core, const v1::AbortRequest& request, v1::AbortResponse* response,
                   const CallLife& life) {
  ASSIGN_OR_RETURN(const Backend* backend, core.Ready());
  RETURN_IF_ERROR(life.caller.status());
  RETURN_IF_ERROR(ValidateAbort(request, backend->request_limits));
  for (const std::string& name : request.request_ids()) {
    const RequestId id = core.live.Find({life.caller->tenant, name});
    if (id != RequestId::kNone) backend->inbox->Abort(id, FinishReason::kAborted);
    v1::AbortResult* result = response->add_results();
    result->set_request_id(name);
    result->set_status(id != RequestId::kNone ? v1::ABORT_STATUS_ABORTED
                                              : v1::ABORT_STATUS_NOT_LIVE);
  }
  return absl::OkStatus();
}

}  // namespace quire
