// A hash of 64 bits in which every bit of the input moves every bit of the output: for random
// numbers by key and for picking places. Pure; the same on every platform.
#pragma once

#include <cstdint>

namespace quire {

// The finaliser of splitmix64, one to one: MixBits(k * 0x9e3779b97f4a7c15) for k = 0, 1, 2, ... is
// that generator, started at 0.
constexpr uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace quire
