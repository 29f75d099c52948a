// Random numbers by key: a value depends on (seed, stream, index) alone, not on what was drawn
// before. So the same request keeps its lengths when the arrival rate changes, and a search over
// rates compares like with like. Pure; the same on every platform.
#pragma once

#include <cstdint>

#include "runtime/base/mix_bits.h"

namespace quire {

constexpr uint64_t KeyedBits(uint64_t seed, uint64_t stream, uint64_t index) {
  return MixBits(MixBits(MixBits(seed) ^ stream) ^ index);
}

// In [0, 1).
constexpr double KeyedUnit(uint64_t seed, uint64_t stream, uint64_t index) {
  return static_cast<double>(KeyedBits(seed, stream, index) >> 11) * 0x1p-53;
}

}  // namespace quire
