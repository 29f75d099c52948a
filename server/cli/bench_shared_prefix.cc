#include "server/cli/bench_shared_prefix.h"

namespace quire {

SharedPrefixResult MeasureSharedPrefix(BenchEngine& engine, const SharedPrefixCase& shape) {
  SharedPrefixResult result;
  engine.SharePrefix(0);
  result.apart_tok_s =
      engine.Decode(shape.batch, shape.prompt_tokens(), shape.output_tokens).TokensPerSecond();
  result.apart_first_s = engine.Prefill(shape.prompt_tokens()).seconds;
  result.tail_first_s = engine.Prefill(shape.tail_tokens).seconds;

  engine.SharePrefix(shape.prefix_tokens);
  (void)engine.Prefill(shape.prompt_tokens());  // leaves the prefix in the cache
  result.shared_first_s = engine.Prefill(shape.prompt_tokens()).seconds;
  result.shared_tok_s =
      engine.Decode(shape.batch, shape.prompt_tokens(), shape.output_tokens).TokensPerSecond();
  engine.SharePrefix(0);
  return result;
}

}  // namespace quire
