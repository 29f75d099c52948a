// What the prefix cache and cascade attention are worth: streams that share a long prefix beside as
// many of the same length that share nothing, in one run.
#pragma once

#include <cstdint>

#include "server/cli/bench_engine.h"

namespace quire {

struct SharedPrefixCase {
  int32_t batch = 32, prefix_tokens = 0, tail_tokens = 64, output_tokens = 64;
  int32_t prompt_tokens() const { return prefix_tokens + tail_tokens; }
};

struct SharedPrefixResult {
  double shared_tok_s = 0, apart_tok_s = 0;  // decoding together
  // Of a lone request: whole prompt new, prefix found, and as if the prompt were the tail alone.
  double apart_first_s = 0, shared_first_s = 0, tail_first_s = 0;
  double ratio() const { return apart_tok_s > 0 ? shared_tok_s / apart_tok_s : 0; }
};

// The engine has blocks for the whole batch apart.
SharedPrefixResult MeasureSharedPrefix(BenchEngine& engine, const SharedPrefixCase& shape);

}  // namespace quire
