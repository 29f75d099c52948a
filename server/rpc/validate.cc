#include "server/rpc/validate.h"

#include <algorithm>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"
#include "runtime/text/utf8.h"
#include "server/rpc/validate_prompt.h"
#include "server/rpc/validate_schedule.h"
#include "server/rpc/violations.h"

namespace quire {
namespace {

constexpr int kMaxStopStrings = 16;
constexpr size_t kMaxStopBytes = 256;
constexpr int kMaxStopIds = 64;
constexpr int kMaxBiases = 1024;
constexpr uint32_t kMaxTokensPerMessage = 256;
constexpr int kMaxDetokenizeIds = 1 << 18;
constexpr int kMaxAbortIds = 1024;

// Accept form: false for NaN.
bool InRange(float value, float low, float high) { return value >= low && value <= high; }

void CheckPenalties(const v1::Sampling& s, Violations* v) {
  const std::string repetition = "sampling.repetition_penalty";
  if (s.has_repetition_penalty()) {
    if (!(s.repetition_penalty() > 0 && s.repetition_penalty() <= 2)) {
      v->Invalid(repetition, "wanted a number above 0, at most 2");
    } else if (s.repetition_penalty() != 1) {
      v->Unsupported(repetition);
    }
  }
  const auto check = [&](bool has, float value, const std::string& field) {
    if (!has) return;
    if (!InRange(value, -2, 2)) {
      v->Invalid(field, "wanted -2..2");
    } else if (value != 0) {
      v->Unsupported(field);
    }
  };
  check(s.has_presence_penalty(), s.presence_penalty(), "sampling.presence_penalty");
  check(s.has_frequency_penalty(), s.frequency_penalty(), "sampling.frequency_penalty");
}

void CheckBias(const v1::Sampling& s, const RequestLimits& limits, Violations* v) {
  if (s.logit_bias().empty()) return;
  const std::string field = "sampling.logit_bias";
  if (s.logit_bias_size() > kMaxBiases) {
    v->Invalid(field,
               absl::StrCat("got ", s.logit_bias_size(), " entries, wanted at most ", kMaxBiases));
    return;
  }
  for (const auto& [id, bias] : s.logit_bias()) {
    if (!(id < static_cast<uint32_t>(limits.vocab_size))) {
      v->Invalid(field,
                 absl::StrCat("id ", id, " is not below the vocabulary's ", limits.vocab_size));
      return;
    }
    if (!InRange(bias, -100, 100)) {
      v->Invalid(field, absl::StrCat("id ", id, ": wanted -100..100"));
      return;
    }
  }
  v->Unsupported(field);
}

void ReadSampling(const v1::Sampling& s, const RequestLimits& limits, ValidRequest* out,
                  Violations* v) {
  if (s.has_num_outputs()) {
    if (!(s.num_outputs() >= 1 && s.num_outputs() <= static_cast<uint32_t>(limits.max_outputs))) {
      v->Invalid("sampling.num_outputs",
                 absl::StrCat("got ", s.num_outputs(), ", wanted 1..", limits.max_outputs));
    } else {
      out->num_sequences = static_cast<int32_t>(s.num_outputs());
    }
  }
  if (s.has_seed()) {
    out->sampling.seed = s.seed();
  } else {
    thread_local absl::BitGen random;
    out->sampling.seed = absl::Uniform<uint64_t>(random);
  }
  if (s.has_temperature()) {
    out->sampling.temperature = s.temperature();
    if (!InRange(s.temperature(), 0, 2)) v->Invalid("sampling.temperature", "wanted 0..2");
  }
  if (s.has_top_k()) {
    out->sampling.top_k = static_cast<int32_t>(s.top_k());
    if (!(s.top_k() <= static_cast<uint32_t>(limits.vocab_size))) {
      v->Invalid("sampling.top_k",
                 absl::StrCat("got ", s.top_k(), ", wanted 0..", limits.vocab_size));
    }
  }
  if (s.has_top_p()) {
    out->sampling.top_p = s.top_p();
    if (!(s.top_p() > 0 && s.top_p() <= 1))
      v->Invalid("sampling.top_p", "wanted a number above 0, at most 1");
  }
  if (s.has_min_p()) {
    out->sampling.min_p = s.min_p();
    if (!InRange(s.min_p(), 0, 1)) v->Invalid("sampling.min_p", "wanted 0..1");
  }
  CheckPenalties(s, v);
  CheckBias(s, limits, v);
}

void ReadStopLists(const v1::Stopping& s, const RequestLimits& limits, StopOptions* out,
                   Violations* v) {
  if (s.stop_strings_size() > kMaxStopStrings) {
    v->Invalid("stopping.stop_strings",
               absl::StrCat("got ", s.stop_strings_size(), ", wanted at most ", kMaxStopStrings));
  } else {
    for (int i = 0; i < s.stop_strings_size(); ++i) {
      const std::string& text = s.stop_strings(i);
      if (!(!text.empty() && text.size() <= kMaxStopBytes)) {
        v->Invalid(absl::StrCat("stopping.stop_strings[", i, "]"),
                   absl::StrCat("got ", text.size(), " bytes, wanted 1..", kMaxStopBytes));
      }
      out->stop_strings.push_back(text);
    }
  }
  if (s.stop_token_ids_size() > kMaxStopIds) {
    v->Invalid("stopping.stop_token_ids",
               absl::StrCat("got ", s.stop_token_ids_size(), ", wanted at most ", kMaxStopIds));
    return;
  }
  for (int i = 0; i < s.stop_token_ids_size(); ++i) {
    const uint32_t id = s.stop_token_ids(i);
    if (!(id < static_cast<uint32_t>(limits.vocab_size))) {
      v->Invalid(absl::StrCat("stopping.stop_token_ids[", i, "]"),
                 absl::StrCat("got ", id, ", wanted less than ", limits.vocab_size));
    }
    out->stop_token_ids.push_back(static_cast<TokenId>(id));
  }
}

void ReadStopping(const v1::Stopping& s, const RequestLimits& limits, StopOptions* out,
                  Violations* v) {
  const auto clamped = [](uint32_t n) {
    return static_cast<int32_t>(std::min<uint32_t>(n, INT32_MAX));
  };
  if (s.has_max_tokens()) {
    out->max_tokens = clamped(s.max_tokens());
    if (!(s.max_tokens() >= 1)) v->Invalid("stopping.max_tokens", "got 0, wanted at least 1");
  }
  if (s.has_min_tokens()) {
    out->min_tokens = clamped(s.min_tokens());
    const uint32_t most =
        s.has_max_tokens() ? s.max_tokens() : static_cast<uint32_t>(limits.default_max_tokens);
    if (!(s.min_tokens() <= most)) {
      v->Invalid("stopping.min_tokens",
                 absl::StrCat("got ", s.min_tokens(), ", wanted at most max_tokens, ", most,
                              s.has_max_tokens() ? "" : " by default"));
    }
  }
  ReadStopLists(s, limits, out, v);
  out->ignore_eos = s.ignore_eos();
  out->keep_stop = s.keep_stop();
  if (s.has_time_limit_ms()) {
    out->time_limit_ms = s.time_limit_ms();
    if (!(s.time_limit_ms() >= 1)) v->Invalid("stopping.time_limit_ms", "got 0, wanted at least 1");
  }
}

void ReadOutput(const v1::OutputOptions& o, const RequestLimits& limits, ValidRequest* out,
                Violations* v) {
  ReplyOptions& reply = out->reply;
  if (!v1::StreamMode_IsValid(o.mode())) {
    v->Invalid("output.mode",
               absl::StrCat("got ", static_cast<int>(o.mode()), ", wanted a declared value"));
  }
  reply.final_only = o.mode() == v1::STREAM_MODE_FINAL;
  if (o.has_tokens_per_message()) {
    reply.tokens_per_message =
        static_cast<int32_t>(std::min(o.tokens_per_message(), kMaxTokensPerMessage));
    if (!(o.tokens_per_message() >= 1 && o.tokens_per_message() <= kMaxTokensPerMessage)) {
      v->Invalid("output.tokens_per_message", absl::StrCat("wanted 1..", kMaxTokensPerMessage));
    } else if (reply.final_only) {
      v->Conflict("output.tokens_per_message", "not with output.mode FINAL");
    }
  }
  if (!(o.top_logprobs() <= static_cast<uint32_t>(limits.max_top_logprobs))) {
    v->Invalid("output.top_logprobs",
               absl::StrCat("got ", o.top_logprobs(), ", wanted 0..", limits.max_top_logprobs));
  }
  out->sampling.top_logprobs = static_cast<int32_t>(
      std::min(o.top_logprobs(), static_cast<uint32_t>(limits.max_top_logprobs)));
  if (o.has_logprobs() && !o.logprobs() && o.top_logprobs() > 0) {
    v->Conflict("output.logprobs", "false excludes output.top_logprobs");
  }
  out->sampling.logprobs = o.logprobs() || o.top_logprobs() > 0;
  if (o.has_tokens() && !o.tokens() && out->sampling.logprobs) {
    v->Conflict("output.tokens", "false excludes output.logprobs and output.top_logprobs");
  }
  reply.tokens = o.tokens() || out->sampling.logprobs;
  reply.text = !o.has_text() || o.text();
  if (!reply.text && !reply.tokens)
    v->Conflict("output.text", "false excludes output.tokens = false");
  if (o.has_prompt_tokens() && !o.prompt_tokens() && o.has_prompt_top_logprobs()) {
    v->Conflict("output.prompt_tokens", "false excludes output.prompt_top_logprobs");
  }
  if (o.prompt_tokens()) v->Unsupported("output.prompt_tokens");
  if (o.has_prompt_top_logprobs()) {
    if (!(o.prompt_top_logprobs() <= static_cast<uint32_t>(limits.max_top_logprobs))) {
      v->Invalid("output.prompt_top_logprobs", absl::StrCat("wanted 0..", limits.max_top_logprobs));
    } else {
      v->Unsupported("output.prompt_top_logprobs");
    }
  }
}

// Fields of features that come later.
void CheckUnsupported(const v1::GenerateRequest& r, Violations* v) {
  if (r.has_constraint()) {
    if (r.constraint().kind_case() == v1::Constraint::KIND_NOT_SET) {
      v->Invalid("constraint", "wanted exactly one kind");
    } else {
      v->Unsupported("constraint");
    }
  }
  if (r.intervention().head_edits_size() > 0 || r.intervention().edge_cuts_size() > 0) {
    v->Unsupported("intervention");
  }
  if (!(r.draft_tokens() <= 16)) {
    v->Invalid("draft_tokens", absl::StrCat("got ", r.draft_tokens(), ", wanted 0..16"));
  } else if (r.draft_tokens() > 0) {
    v->Unsupported("draft_tokens");
  }
}

// What every request starts with: its model and its unknown fields.
absl::Status Begin(const google::protobuf::Message& request, const std::string& model,
                   const RequestLimits& limits, Violations* v) {
  if (!limits.ignore_unknown_fields) v->UnknownFields(request);
  if (!v->empty()) return absl::OkStatus();  // reported with the rest
  return CheckModelName(model, limits);
}

}  // namespace

bool IsPrintable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
}

bool IsValidRequestId(const std::string& id) {
  return !id.empty() && id.size() <= 128 && IsPrintable(id);
}

absl::Status CheckModelName(const std::string& model, const RequestLimits& limits) {
  const auto& names = limits.model_names;
  if (model.empty() || std::find(names.begin(), names.end(), model) != names.end())
    return absl::OkStatus();
  return MakeError(absl::StatusCode::kNotFound, "no such model is served here",
                   {.reason = "MODEL_NOT_FOUND",
                    .metadata = {{"model", model.substr(0, CutBefore(model, 128))}},
                    .violations = {}});
}

absl::StatusOr<ValidRequest> ValidateGenerate(const v1::GenerateRequest& request,
                                              const RequestLimits& limits, const Caller& caller) {
  Violations violations;
  if (absl::Status s = Begin(request, request.model(), limits, &violations); !s.ok()) return s;
  if (!request.request_id().empty() && !IsValidRequestId(request.request_id())) {
    violations.Invalid("request_id", "wanted 1..128 printable ASCII characters");
  }
  ValidRequest out;
  out.prompt = ReadPrompt(request.has_prompt() ? &request.prompt() : nullptr, limits, &violations);
  ReadSampling(request.sampling(), limits, &out, &violations);
  ReadStopping(request.stopping(), limits, &out.stop, &violations);
  ReadOutput(request.output(), limits, &out, &violations);
  ReadCacheOptions(request.cache(), &out, &violations);
  ReadKvPolicy(request.kv_policy(), limits, &out, &violations);
  ReadPriority(request, caller, &out, &violations);
  CheckUnsupported(request, &violations);
  if (!violations.empty()) return violations.ToStatus();
  return out;
}

absl::StatusOr<PromptSource> ValidateTokenize(const v1::TokenizeRequest& request,
                                              const RequestLimits& limits) {
  Violations violations;
  if (absl::Status s = Begin(request, request.model(), limits, &violations); !s.ok()) return s;
  PromptSource out =
      ReadPrompt(request.has_prompt() ? &request.prompt() : nullptr, limits, &violations);
  if (!violations.empty()) return violations.ToStatus();
  return out;
}

absl::StatusOr<std::vector<TokenId>> ValidateDetokenize(const v1::DetokenizeRequest& request,
                                                        const RequestLimits& limits) {
  Violations violations;
  if (absl::Status s = Begin(request, request.model(), limits, &violations); !s.ok()) return s;
  std::vector<TokenId> out =
      ReadTokenIds(request.tokens(), "tokens", kMaxDetokenizeIds, limits, &violations);
  if (!violations.empty()) return violations.ToStatus();
  return out;
}

absl::Status ValidateAbort(const v1::AbortRequest& request, const RequestLimits& limits) {
  Violations violations;
  if (!limits.ignore_unknown_fields) violations.UnknownFields(request);
  const int count = request.request_ids_size();
  if (!(count >= 1 && count <= kMaxAbortIds)) {
    violations.Invalid("request_ids",
                       absl::StrCat("got ", count, " ids, wanted 1..", kMaxAbortIds));
  } else {
    for (int i = 0; i < count; ++i) {
      if (!IsValidRequestId(request.request_ids(i))) {
        violations.Invalid(absl::StrCat("request_ids[", i, "]"),
                           "wanted 1..128 printable ASCII characters");
      }
    }
  }
  return violations.ToStatus();
}

}  // namespace quire
