// Random numbers by key: a value depends on (seed, stream, index) alone, not on what was drawn
// before. So the same request keeps its lengths when the arrival rate changes, and a search over
// rates compares like with like. Pure; the same on every platform.
#pragma once

#include <cstdint>

namespace quire {

// The finaliser of splitmix64.
constexpr uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t KeyedBits(uint64_t seed, uint64_t stream, uint64_t index) {
  return MixBits(MixBits(MixBits(seed) ^ stream) ^ index);
}

// In [0, 1).
constexpr double KeyedUnit(uint64_t seed, uint64_t stream, uint64_t index) {
  return static_cast<double>(KeyedBits(seed, stream, index) >> 11) * 0x1p-53;
}

}  // namespace quire
