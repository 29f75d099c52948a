// The inner loops of the probe. Plain functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

// Reads every 64-byte line of [data, data + bytes); returns a value that depends on all of them.
uint64_t ReadLines(const std::byte* data, size_t bytes);

// Executes `rounds` of independent u8 x s8 multiply-adds of the widest kind that the active level
// has; returns the operations done (2 per multiply-add), 0 at the scalar level.
double RunInt8Rounds(int64_t rounds);

// A chain of `count` dependent additions, one clock each; count is a multiple of 16.
void RunAddChain(int64_t count);

}  // namespace quire
