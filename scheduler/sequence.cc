#include "scheduler/sequence.h"

#include <algorithm>

namespace quire {

Sequence::Sequence(const Request& request, int32_t output_index, uint64_t order, BlockPool& pool)
    : id{request.id, output_index},
      request(&request),
      order(order),
      blocks(pool, num_prompt() + request.stop.max_tokens) {
  tokens.reserve(request.prompt.size() + static_cast<size_t>(request.stop.max_tokens));
  tokens.assign(request.prompt.begin(), request.prompt.end());
}

// From the last of them, up to what was given back before.
void Sequence::ReleasePassed() {
  const KvPolicy& kv = request->kv;
  for (int32_t i = FirstWindowBlock(kv, num_computed); i-- > SinkBlocks(kv);) {
    if (blocks.at(i) == BlockId::kNone) return;
    blocks.ReleaseAt(i);
  }
}

void Sequence::Preempt() {
  blocks.Release();
  computed_before = std::max(computed_before, num_computed);
  num_computed = 0;
  forks.places = 1;
  setbacks.bypasses = 0;
  ++setbacks.preemptions;
}

}  // namespace quire
