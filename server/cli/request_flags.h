// Flags of a request, most of them shared by generate and chat, and the request they make. One
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "quire/v1/inference.pb.h"

namespace CLI {
class App;
}

namespace quire {

class RequestFlags {
 public:
  void AddTo(CLI::App& app);
  // Those that make no sense in a conversation: several outputs, and what is known of tokens.
  void AddOutputsTo(CLI::App& app);
  // All of the request but its prompt.
  void Fill(v1::GenerateRequest* request) const;

 private:
  std::string model_name_;
  std::optional<uint32_t> max_tokens_, min_tokens_, top_k_, top_logprobs_, time_limit_ms_,
      num_outputs_, window_tokens_, sink_tokens_;
  std::optional<uint64_t> seed_;
  std::optional<int32_t> priority_;
  std::string salt_;
  bool no_cache_ = false;
  std::optional<float> temperature_, top_p_, min_p_;
  std::vector<std::string> stops_;
  bool ignore_eos_ = false;
};

}  // namespace quire
