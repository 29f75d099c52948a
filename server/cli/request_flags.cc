#include "server/cli/request_flags.h"

#include <CLI/CLI.hpp>

namespace quire {

void RequestFlags::AddTo(CLI::App& app) {
  app.add_option("--model-name", model_name_, "model to ask for [the loaded one]");
  app.add_option("--max-tokens", max_tokens_, "most tokens of an output [the server's default]");
  app.add_option("--min-tokens", min_tokens_, "no end before this many tokens [0]");
  app.add_option("--temperature", temperature_, "0 is greedy [1; 0..2]");
  app.add_option("--top-k", top_k_, "keep the k likeliest [0 = off]");
  app.add_option("--top-p", top_p_, "keep this mass [1 = off]");
  app.add_option("--min-p", min_p_, "drop below this share of the best [0 = off]");
  app.add_option("--seed", seed_, "random stream [drawn by the server]");
  app.add_option("--stop", stops_, "end at this text; repeatable")->allow_extra_args(false);
  app.add_option("--time-limit-ms", time_limit_ms_, "end with the text so far [none]");
  app.add_option("--priority", priority_, "higher is served sooner [0; -10..10]");
  app.add_option("--cache-salt", salt_, "share the prefix cache with this salt only [none]");
  app.add_flag("--no-cache", no_cache_, "neither use nor fill the prefix cache");
  auto* window = app.add_option("--window-tokens", window_tokens_,
                                "keep the keys and values of this many last tokens only [all]");
  app.add_option("--sink-tokens", sink_tokens_,
                 "and of this many first ones, with --window-tokens [4]")
      ->needs(window);
  app.add_flag("--ignore-eos", ignore_eos_, "draw on past the model's end token");
}

void RequestFlags::AddOutputsTo(CLI::App& app) {
  app.add_option("-n", num_outputs_, "independent continuations [1]");
  app.add_option("--logprobs", top_logprobs_,
                 "print a table of the tokens below the text: logprob, rank, and this many "
                 "alternatives of each [off]");
}

void RequestFlags::Fill(v1::GenerateRequest* request) const {
  request->set_model(model_name_);
  v1::Sampling* sampling = request->mutable_sampling();
  if (num_outputs_) sampling->set_num_outputs(*num_outputs_);
  if (seed_) sampling->set_seed(*seed_);
  if (temperature_) sampling->set_temperature(*temperature_);
  if (top_k_) sampling->set_top_k(*top_k_);
  if (top_p_) sampling->set_top_p(*top_p_);
  if (min_p_) sampling->set_min_p(*min_p_);
  v1::Stopping* stopping = request->mutable_stopping();
  if (max_tokens_) stopping->set_max_tokens(*max_tokens_);
  if (min_tokens_) stopping->set_min_tokens(*min_tokens_);
  for (const std::string& stop : stops_) stopping->add_stop_strings(stop);
  if (ignore_eos_) stopping->set_ignore_eos(true);
  if (time_limit_ms_) stopping->set_time_limit_ms(*time_limit_ms_);
  if (priority_) request->set_priority(*priority_);
  if (!salt_.empty()) request->mutable_cache()->set_salt(salt_);
  if (no_cache_) request->mutable_cache()->set_bypass(true);
  if (window_tokens_) request->mutable_kv_policy()->set_window_tokens(*window_tokens_);
  if (sink_tokens_) request->mutable_kv_policy()->set_sink_tokens(*sink_tokens_);
  if (top_logprobs_) {
    request->mutable_output()->set_logprobs(true);
    request->mutable_output()->set_top_logprobs(*top_logprobs_);
  }
}

}  // namespace quire
