#include "server/rpc/validate.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_info.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using Edit = std::function<void(v1::GenerateRequest&)>;

RequestLimits Limits() {
  return {.model_names = {"tiny", "tiny-alias"},
          .vocab_size = 100,
          .context_tokens = 200,
          .default_max_tokens = 20,
          .max_prompt_bytes = 1000};
}

v1::GenerateRequest Plain() {
  v1::GenerateRequest request;
  request.mutable_prompt()->set_text("hello");
  return request;
}

absl::StatusOr<ValidRequest> Validate(const Edit& edit, const Caller& caller = {}) {
  v1::GenerateRequest request = Plain();
  edit(request);
  return ValidateGenerate(request, Limits(), caller);
}

// What the reply says is wrong: "REASON field".
std::string Complaint(const Edit& edit) {
  const absl::StatusOr<ValidRequest> result = Validate(edit);
  if (result.ok()) return "OK";
  const ErrorInfo info = GetErrorInfo(result.status());
  const bool unimplemented = info.reason == "FIELD_UNSUPPORTED" || info.reason == "FIELD_UNKNOWN";
  EXPECT_EQ(result.status().code(),
            unimplemented ? absl::StatusCode::kUnimplemented : absl::StatusCode::kInvalidArgument);
  return info.reason + (info.violations.empty() ? "" : " " + info.violations[0].field);
}

TEST(ValidateGenerate, FillsInTheDocumentedDefaults) {
  const auto r = Validate([](auto&) {});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->sampling.temperature, 1.0f);
  EXPECT_EQ(r->sampling.top_k, 0);
  EXPECT_EQ(r->sampling.top_p, 1.0f);
  EXPECT_EQ(r->sampling.min_p, 0.0f);
  EXPECT_FALSE(r->stop.max_tokens.has_value());
  EXPECT_TRUE(r->reply.text);
  EXPECT_FALSE(r->reply.tokens);
  EXPECT_EQ(r->reply.tokens_per_message, 1);
  EXPECT_TRUE(r->prompt.add_special_tokens);
  EXPECT_FALSE(r->prompt.parse_special_tokens);
}

TEST(ValidateGenerate, KeepsEveryValueItWasGiven) {
  const auto r = Validate([](auto& q) {
    q.mutable_sampling()->set_seed(0);
    q.mutable_sampling()->set_temperature(0.5f);
    q.mutable_sampling()->set_top_k(7);
    q.mutable_sampling()->set_top_p(0.25f);
    q.mutable_sampling()->set_min_p(0.125f);
    q.mutable_stopping()->set_max_tokens(9);
    q.mutable_stopping()->set_min_tokens(3);
    q.mutable_stopping()->add_stop_strings("###");
    q.mutable_stopping()->add_stop_token_ids(42);
    q.mutable_stopping()->set_ignore_eos(true);
    q.mutable_stopping()->set_keep_stop(true);
    q.mutable_stopping()->set_time_limit_ms(250);
    q.mutable_output()->set_top_logprobs(5);
    q.mutable_output()->set_tokens_per_message(8);
  });
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->sampling.seed, 0u);
  EXPECT_EQ(r->sampling.temperature, 0.5f);
  EXPECT_EQ(r->sampling.top_k, 7);
  EXPECT_EQ(r->sampling.top_p, 0.25f);
  EXPECT_EQ(r->sampling.min_p, 0.125f);
  EXPECT_TRUE(r->sampling.logprobs);
  EXPECT_EQ(r->sampling.top_logprobs, 5);
  EXPECT_EQ(r->stop.max_tokens, 9);
  EXPECT_EQ(r->stop.min_tokens, 3);
  EXPECT_THAT(r->stop.stop_strings, ElementsAre("###"));
  EXPECT_THAT(r->stop.stop_token_ids, ElementsAre(TokenId{42}));
  EXPECT_TRUE(r->stop.ignore_eos);
  EXPECT_TRUE(r->stop.keep_stop);
  EXPECT_EQ(r->stop.time_limit_ms, 250);
  EXPECT_TRUE(r->reply.tokens);
  EXPECT_EQ(r->reply.tokens_per_message, 8);
}

TEST(ValidateGenerate, DrawsADifferentSeedForEachRequestWithoutOne) {
  const auto a = Validate([](auto&) {}), b = Validate([](auto&) {});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->sampling.seed, b->sampling.seed);
}

TEST(ValidateGenerate, RefusesFloatsOutOfRangeAndNotFinite) {
  struct Row {
    const char* field;
    void (v1::Sampling::*set)(float);
    float low, high;
    bool low_open;
  };
  const Row rows[] = {
      {"sampling.temperature", &v1::Sampling::set_temperature, 0, 2, false},
      {"sampling.top_p", &v1::Sampling::set_top_p, 0, 1, true},
      {"sampling.min_p", &v1::Sampling::set_min_p, 0, 1, false},
      {"sampling.repetition_penalty", &v1::Sampling::set_repetition_penalty, 0, 2, true},
      {"sampling.presence_penalty", &v1::Sampling::set_presence_penalty, -2, 2, false},
      {"sampling.frequency_penalty", &v1::Sampling::set_frequency_penalty, -2, 2, false},
  };
  const float inf = std::numeric_limits<float>::infinity();
  for (const Row& row : rows) {
    const std::string refused = std::string("FIELD_INVALID ") + row.field;
    for (const float bad : {std::nanf(""), inf, -inf, 1e38f, std::nextafter(row.high, inf),
                            std::nextafter(row.low, -inf)}) {
      EXPECT_EQ(Complaint([&](auto& q) { (q.mutable_sampling()->*row.set)(bad); }), refused) << bad;
    }
    if (row.low_open) {
      EXPECT_EQ(Complaint([&](auto& q) { (q.mutable_sampling()->*row.set)(row.low); }), refused);
    }
    EXPECT_NE(Complaint([&](auto& q) { (q.mutable_sampling()->*row.set)(row.high); }), refused);
  }
}

TEST(ValidateGenerate, RefusesBadPromptsByName) {
  const std::pair<const char*, Edit> rows[] = {
      {"FIELD_INVALID prompt", [](auto& q) { q.clear_prompt(); }},
      {"FIELD_INVALID prompt", [](auto& q) { q.mutable_prompt()->clear_text(); }},
      {"PROMPT_EMPTY prompt.text", [](auto& q) { q.mutable_prompt()->set_text(""); }},
      {"PROMPT_BYTES prompt.text",
       [](auto& q) { q.mutable_prompt()->set_text(std::string(1001, 'a')); }},
      {"PROMPT_EMPTY prompt.tokens", [](auto& q) { q.mutable_prompt()->mutable_tokens(); }},
      {"FIELD_INVALID prompt.tokens.ids[1]",
       [](auto& q) {
         q.mutable_prompt()->mutable_tokens()->add_ids(99);
         q.mutable_prompt()->mutable_tokens()->add_ids(100);
       }},
      {"PROMPT_TOO_LONG prompt.tokens",
       [](auto& q) {
         for (int i = 0; i < 200; ++i) q.mutable_prompt()->mutable_tokens()->add_ids(1);
       }},
      {"FIELD_CONFLICT prompt.add_special_tokens",
       [](auto& q) {
         q.mutable_prompt()->mutable_tokens()->add_ids(1);
         q.mutable_prompt()->set_add_special_tokens(false);
       }},
      {"FIELD_CONFLICT prompt.parse_special_tokens",
       [](auto& q) {
         q.mutable_prompt()->mutable_tokens()->add_ids(1);
         q.mutable_prompt()->set_parse_special_tokens(false);
       }},
      {"FIELD_INVALID prompt.truncate_to_tokens",
       [](auto& q) { q.mutable_prompt()->set_truncate_to_tokens(0); }},
      {"FIELD_INVALID prompt.truncate_to_tokens",
       [](auto& q) { q.mutable_prompt()->set_truncate_to_tokens(200); }},
      {"FIELD_INVALID prompt.chat.messages", [](auto& q) { q.mutable_prompt()->mutable_chat(); }},
      {"FIELD_INVALID prompt.chat.messages[0].role",
       [](auto& q) { q.mutable_prompt()->mutable_chat()->add_messages()->set_role("User"); }},
  };
  for (const auto& [wanted, edit] : rows) EXPECT_EQ(Complaint(edit), wanted);
}

TEST(ValidateGenerate, RefusesEachValueOutOfItsRangeByName) {
  const std::pair<const char*, Edit> rows[] = {
      {"FIELD_INVALID request_id", [](auto& q) { q.set_request_id(std::string(129, 'a')); }},
      {"FIELD_INVALID request_id", [](auto& q) { q.set_request_id("a\x01"); }},
      {"FIELD_INVALID sampling.num_outputs",
       [](auto& q) { q.mutable_sampling()->set_num_outputs(0); }},
      {"FIELD_INVALID sampling.num_outputs",
       [](auto& q) { q.mutable_sampling()->set_num_outputs(1'000'000'000); }},
      {"FIELD_INVALID sampling.top_k", [](auto& q) { q.mutable_sampling()->set_top_k(101); }},
      {"FIELD_INVALID sampling.logit_bias",
       [](auto& q) { (*q.mutable_sampling()->mutable_logit_bias())[100] = 0; }},
      {"FIELD_INVALID sampling.logit_bias",
       [](auto& q) { (*q.mutable_sampling()->mutable_logit_bias())[1] = std::nanf(""); }},
      {"FIELD_INVALID stopping.max_tokens",
       [](auto& q) { q.mutable_stopping()->set_max_tokens(0); }},
      {"FIELD_INVALID stopping.min_tokens",
       [](auto& q) {
         q.mutable_stopping()->set_max_tokens(3);
         q.mutable_stopping()->set_min_tokens(4);
       }},
      {"FIELD_INVALID stopping.min_tokens",  // above the default of max_tokens
       [](auto& q) { q.mutable_stopping()->set_min_tokens(21); }},
      {"FIELD_INVALID stopping.stop_strings[0]",
       [](auto& q) { q.mutable_stopping()->add_stop_strings(""); }},
      {"FIELD_INVALID stopping.stop_strings[0]",
       [](auto& q) { q.mutable_stopping()->add_stop_strings(std::string(257, 'x')); }},
      {"FIELD_INVALID stopping.stop_strings",
       [](auto& q) {
         for (int i = 0; i < 17; ++i) q.mutable_stopping()->add_stop_strings("x");
       }},
      {"FIELD_INVALID stopping.stop_token_ids[0]",
       [](auto& q) { q.mutable_stopping()->add_stop_token_ids(100); }},
      {"FIELD_INVALID stopping.time_limit_ms",
       [](auto& q) { q.mutable_stopping()->set_time_limit_ms(0); }},
      {"FIELD_INVALID output.mode",
       [](auto& q) { q.mutable_output()->set_mode(static_cast<v1::StreamMode>(77)); }},
      {"FIELD_INVALID output.tokens_per_message",
       [](auto& q) { q.mutable_output()->set_tokens_per_message(257); }},
      {"FIELD_CONFLICT output.tokens_per_message",
       [](auto& q) {
         q.mutable_output()->set_mode(v1::STREAM_MODE_FINAL);
         q.mutable_output()->set_tokens_per_message(2);
       }},
      {"FIELD_INVALID output.top_logprobs",
       [](auto& q) { q.mutable_output()->set_top_logprobs(21); }},
      {"FIELD_CONFLICT output.text", [](auto& q) { q.mutable_output()->set_text(false); }},
      {"FIELD_CONFLICT output.tokens",
       [](auto& q) {
         q.mutable_output()->set_tokens(false);
         q.mutable_output()->set_logprobs(true);
       }},
      {"FIELD_INVALID constraint", [](auto& q) { q.mutable_constraint(); }},
      {"FIELD_INVALID draft_tokens", [](auto& q) { q.set_draft_tokens(17); }},
  };
  for (const auto& [wanted, edit] : rows) EXPECT_EQ(Complaint(edit), wanted);
}

TEST(ValidateGenerate, RefusesWhatTheSchedulerCannotDoByName) {
  const std::pair<const char*, Edit> rows[] = {
      {"FIELD_INVALID cache.salt",
       [](auto& q) { q.mutable_cache()->set_salt(std::string(65, 'a')); }},
      {"FIELD_INVALID cache.salt", [](auto& q) { q.mutable_cache()->set_salt("a\n"); }},
      {"FIELD_INVALID kv_policy.window_tokens",
       [](auto& q) { q.mutable_kv_policy()->set_window_tokens(63); }},
      {"FIELD_INVALID kv_policy.window_tokens",
       [](auto& q) { q.mutable_kv_policy()->set_window_tokens(201); }},
      {"FIELD_CONFLICT kv_policy.sink_tokens",
       [](auto& q) { q.mutable_kv_policy()->set_sink_tokens(4); }},
      {"FIELD_INVALID kv_policy.sink_tokens",
       [](auto& q) {
         q.mutable_kv_policy()->set_window_tokens(64);
         q.mutable_kv_policy()->set_sink_tokens(257);
       }},
      {"FIELD_INVALID priority", [](auto& q) { q.set_priority(11); }},
      {"FIELD_INVALID priority", [](auto& q) { q.set_priority(-11); }},
  };
  for (const auto& [wanted, edit] : rows) EXPECT_EQ(Complaint(edit), wanted);
}

TEST(ValidateGenerate, RefusesFeaturesThatItLacksByName) {
  const std::pair<const char*, Edit> rows[] = {
      {"sampling.repetition_penalty",
       [](auto& q) { q.mutable_sampling()->set_repetition_penalty(1.1f); }},
      {"sampling.presence_penalty",
       [](auto& q) { q.mutable_sampling()->set_presence_penalty(0.5f); }},
      {"sampling.frequency_penalty",
       [](auto& q) { q.mutable_sampling()->set_frequency_penalty(-0.5f); }},
      {"sampling.logit_bias",
       [](auto& q) { (*q.mutable_sampling()->mutable_logit_bias())[1] = 1; }},
      {"constraint", [](auto& q) { q.mutable_constraint()->set_regex("a"); }},
      {"intervention", [](auto& q) { q.mutable_intervention()->add_head_edits(); }},
      {"draft_tokens", [](auto& q) { q.set_draft_tokens(1); }},
      {"kv_policy.window_tokens", [](auto& q) { q.mutable_kv_policy()->set_window_tokens(64); }},
      {"output.prompt_tokens", [](auto& q) { q.mutable_output()->set_prompt_tokens(true); }},
      {"output.prompt_top_logprobs",
       [](auto& q) { q.mutable_output()->set_prompt_top_logprobs(0); }},
      {"prompt.chat.tools_json",
       [](auto& q) {
         q.mutable_prompt()->mutable_chat()->add_messages()->set_role("user");
         q.mutable_prompt()->mutable_chat()->set_tools_json("[]");
       }},
  };
  for (const auto& [field, edit] : rows) {
    EXPECT_EQ(Complaint(edit), std::string("FIELD_UNSUPPORTED ") + field);
    const ErrorInfo info = GetErrorInfo(Validate(edit).status());
    EXPECT_THAT(info.metadata, ElementsAre(std::pair<std::string, std::string>("field", field)));
  }
}

TEST(ValidateGenerate, TakesNeutralValuesOfFeaturesThatItLacks) {
  EXPECT_EQ(Complaint([](auto& q) {
              q.mutable_sampling()->set_repetition_penalty(1);
              q.mutable_sampling()->set_presence_penalty(0);
              q.mutable_sampling()->set_frequency_penalty(0);
              q.mutable_intervention();
              q.mutable_kv_policy();
              q.mutable_output()->set_prompt_tokens(false);
              q.set_draft_tokens(0);
            }),
            "OK");
}

TEST(ValidateGenerate, ReadsOutputsAndTheUseOfTheCache) {
  const auto r = Validate([](auto& q) {
    q.mutable_sampling()->set_num_outputs(8);
    q.mutable_cache()->set_bypass(true);
    q.mutable_cache()->set_salt("team 7");
  });
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->num_sequences, 8);
  EXPECT_TRUE(r->cache_bypass);
  EXPECT_EQ(r->cache_salt, "team 7");
  EXPECT_EQ(r->kv, KvPolicy{});
  const auto plain = Validate([](auto&) {});
  EXPECT_EQ(plain->num_sequences, 1);
  EXPECT_FALSE(plain->cache_bypass);
}

TEST(ValidateGenerate, ReadsAKvPolicyWhereTheRuntimeHonoursIt) {
  RequestLimits limits = Limits();
  limits.kv_windows = true;
  v1::GenerateRequest request = Plain();
  request.mutable_kv_policy()->set_window_tokens(64);
  EXPECT_EQ(ValidateGenerate(request, limits)->kv, (KvPolicy{64, 4}));
  request.mutable_kv_policy()->set_window_tokens(200);
  request.mutable_kv_policy()->set_sink_tokens(0);
  EXPECT_EQ(ValidateGenerate(request, limits)->kv, (KvPolicy{200, 0}));
}

TEST(ValidateGenerate, PriorityComesFromTheFieldOrTheMetadataAndTheyAgree) {
  const auto with = [](std::optional<int32_t> field, std::optional<int32_t> metadata) {
    return Validate(
        [&](auto& q) {
          if (field) q.set_priority(*field);
        },
        Caller{.tenant = {}, .priority = metadata});
  };
  EXPECT_EQ(with({}, {})->priority, 0);
  EXPECT_EQ(with(-10, {})->priority, -10);
  EXPECT_EQ(with({}, 10)->priority, 10);
  EXPECT_EQ(with(3, 3)->priority, 3);
  const ErrorInfo info = GetErrorInfo(with(3, 4).status());
  EXPECT_EQ(info.reason, "FIELD_CONFLICT");
  EXPECT_EQ(info.violations[0].field, "priority");
}

TEST(ValidateGenerate, FindsUnknownFieldsAtAnyDepth) {
  EXPECT_EQ(Complaint([](auto& q) {
              q.mutable_prompt()->mutable_chat()->add_messages()->set_role("user");
              auto* message = q.mutable_prompt()->mutable_chat()->mutable_messages(0);
              message->GetReflection()->MutableUnknownFields(message)->AddVarint(99, 1);
            }),
            "FIELD_UNKNOWN quire.v1.ChatMessage#99");
  v1::GenerateRequest request = Plain();
  request.GetReflection()->MutableUnknownFields(&request)->AddVarint(15, 1);
  const ErrorInfo info = GetErrorInfo(ValidateGenerate(request, Limits()).status());
  EXPECT_THAT(info.metadata, ElementsAre(std::pair<std::string, std::string>(
                                             "message", "quire.v1.GenerateRequest"),
                                         std::pair<std::string, std::string>("number", "15")));
  RequestLimits relaxed = Limits();
  relaxed.ignore_unknown_fields = true;
  EXPECT_TRUE(ValidateGenerate(request, relaxed).ok());
}

TEST(ValidateGenerate, ListsAtMostSixteenViolationsInOneReply) {
  const auto result = Validate([](auto& q) {
    for (int i = 0; i < 16; ++i) q.mutable_stopping()->add_stop_strings("");
    q.mutable_sampling()->set_temperature(-1);
    q.mutable_sampling()->set_top_p(-1);
  });
  const ErrorInfo info = GetErrorInfo(result.status());
  EXPECT_EQ(info.violations.size(), 16u);
  EXPECT_EQ(info.violations[0].field, "sampling.temperature");
  EXPECT_EQ(info.violations[1].field, "sampling.top_p");
}

TEST(ValidateGenerate, KnowsTheModelByIdAndAlias) {
  EXPECT_EQ(Complaint([](auto& q) { q.set_model("tiny"); }), "OK");
  EXPECT_EQ(Complaint([](auto& q) { q.set_model("tiny-alias"); }), "OK");
  const auto result = Validate([](auto& q) { q.set_model("other"); });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(GetErrorInfo(result.status()).reason, "MODEL_NOT_FOUND");
}

TEST(ValidateGenerate, ReadsChat) {
  const auto r = Validate([](auto& q) {
    v1::Chat* chat = q.mutable_prompt()->mutable_chat();
    chat->add_messages()->set_role("system");
    chat->add_messages()->set_role("assistant");
    chat->mutable_messages(1)->set_content("So");
    chat->set_continue_final_message(true);
  });
  ASSERT_TRUE(r.ok()) << r.status();
  const auto& chat = std::get<ChatPrompt>(r->prompt.source);
  ASSERT_EQ(chat.messages.size(), 2u);
  EXPECT_EQ(chat.messages[1].content, "So");
  EXPECT_TRUE(chat.continue_final_message);
  EXPECT_FALSE(chat.add_generation_prompt);
  EXPECT_EQ(Complaint([](auto& q) {
              v1::Chat* c = q.mutable_prompt()->mutable_chat();
              c->add_messages()->set_role("assistant");
              c->set_continue_final_message(true);
              c->set_add_generation_prompt(true);
            }),
            "FIELD_CONFLICT prompt.chat.continue_final_message");
  EXPECT_EQ(Complaint([](auto& q) {
              v1::Chat* c = q.mutable_prompt()->mutable_chat();
              c->add_messages()->set_role("user");
              c->set_continue_final_message(true);
            }),
            "FIELD_INVALID prompt.chat.continue_final_message");
}

TEST(CheckModelName, CutsALongNameBetweenCodePoints) {
  const absl::Status status = CheckModelName(std::string(127, 'a') + "\u00e9", Limits());
  EXPECT_EQ(GetErrorInfo(status).metadata[0].second, std::string(127, 'a'));
}

TEST(ValidateAbort, WantsOneToAThousandIds) {
  v1::AbortRequest request;
  EXPECT_FALSE(ValidateAbort(request, Limits()).ok());
  request.add_request_ids("a");
  EXPECT_TRUE(ValidateAbort(request, Limits()).ok());
  request.add_request_ids("");
  EXPECT_FALSE(ValidateAbort(request, Limits()).ok());
  request.clear_request_ids();
  for (int i = 0; i < 1025; ++i) request.add_request_ids("a");
  EXPECT_FALSE(ValidateAbort(request, Limits()).ok());
}

TEST(ValidateDetokenize, BoundsIds) {
  v1::DetokenizeRequest request;
  EXPECT_TRUE(ValidateDetokenize(request, Limits()).ok());
  request.mutable_tokens()->add_ids(99);
  EXPECT_TRUE(ValidateDetokenize(request, Limits()).ok());
  request.mutable_tokens()->add_ids(100);
  EXPECT_FALSE(ValidateDetokenize(request, Limits()).ok());
}

}  // namespace
}  // namespace quire
