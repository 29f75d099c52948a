// Random numbers as a pure function of their key: no state, so no neighbour, slot or retry changes
// a draw. Any thread.
#pragma once

#include <array>
#include <cstdint>

namespace quire {

// Philox4x32-10 (Salmon et al., SC'11).
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The number in [0, 1) that draws the token at `position` of output `output_index`: the first 64
// bits of Philox at counter (output_index, position, 0, 0) with the seed as key, low word first;
// their top 53 bits over 2^53.
double UniformAt(uint64_t seed, int32_t output_index, int32_t position);

}  // namespace quire
