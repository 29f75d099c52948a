#include "scheduler/pins.h"

#include <algorithm>

namespace quire {

bool PinsHold(std::span<Sequence* const> running, std::span<Sequence* const> leaving,
              const Sequence& head, int32_t total_blocks) {
  const auto stays = [&](const Sequence* s) {
    return std::ranges::find(leaving, s) == leaving.end();
  };
  const Sequence* lowest = head.setbacks.pinned ? &head : nullptr;  // pinned one of lowest rank
  for (const Sequence* sequence : running) {
    if (!sequence->setbacks.pinned || !stays(sequence)) continue;
    if (lowest == nullptr || lowest->Outranks(*sequence)) lowest = sequence;
  }
  if (lowest == nullptr) return true;
  if (&head != lowest && !head.Outranks(*lowest)) return true;  // a victim of all of them
  int64_t most = head.MostBlocks();
  bool alone = true;
  for (const Sequence* sequence : running) {
    if ((sequence != lowest && !sequence->Outranks(*lowest)) || !stays(sequence)) continue;
    most += sequence->MostBlocks();
    alone = false;
  }
  return alone || most <= total_blocks;
}

}  // namespace quire
