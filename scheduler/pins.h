// The promise behind max_preemptions: a pinned sequence, once admitted, keeps its blocks. It holds
// as long as all pinned sequences and all that outrank one of them fit the pool together with the
// most they will ever hold: then whatever one of them lacks can be taken from the others, which are
// below all pinned ones and not pinned. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "scheduler/sequence.h"

namespace quire {

// Whether the promise still holds with `head` beside `running` (in order of rank) without
// `leaving`.
bool PinsHold(std::span<Sequence* const> running, std::span<Sequence* const> leaving,
              const Sequence& head, int32_t total_blocks);

}  // namespace quire
