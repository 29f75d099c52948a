// Deterministic pseudo-random numbers for fakes and seeded tests; the same on every platform and
// library.
#pragma once

#include <cstdint>

namespace quire {

// The finaliser of splitmix64.
constexpr uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr uint64_t Mix(uint64_t a, uint64_t b) { return Mix(Mix(a) ^ b); }

class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(Mix(seed)) {}
  uint64_t Next() { return state_ = Mix(state_); }
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
