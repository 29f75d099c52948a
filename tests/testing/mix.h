// Deterministic pseudo-random numbers for fakes and seeded tests; the same on every platform and
// library.
#pragma once

#include <cstdint>

#include "runtime/base/mix_bits.h"

namespace quire {

constexpr uint64_t Mix(uint64_t a, uint64_t b) { return MixBits(MixBits(a) ^ b); }

class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(MixBits(seed)) {}
  uint64_t Next() { return state_ = MixBits(state_); }
  // Uniform in [low, high].
  int32_t Between(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int32_t percent) { return Between(0, 99) < percent; }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace quire
