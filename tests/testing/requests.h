// Builders of scheduler requests.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/request.h"
#include "tests/testing/mix.h"

namespace quire {

// `count` tokens below `vocab_size`, a function of the seed.
inline std::vector<TokenId> RandomTokens(uint64_t seed, int32_t count, int32_t vocab_size = 256) {
  TestRandom random(seed);
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (TokenId& token : tokens) token = TokenId{random.Between(0, vocab_size - 1)};
  return tokens;
}

// Greedy, no end tokens: runs for exactly max_tokens tokens.
inline Request MakeRequest(uint64_t id, int32_t prompt_tokens, int32_t max_tokens) {
  Request request;
  request.id = RequestId{id};
  request.prompt = RandomTokens(id, prompt_tokens);
  request.sampling.temperature = 0;
  request.sampling.seed = id;
  request.stop.max_tokens = max_tokens;
  return request;
}

}  // namespace quire
