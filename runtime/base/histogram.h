// Histograms over bounds fixed at compile time, or chosen when the process starts: plain values
// that one thread observes into and publishes as a whole. They neither lock nor allocate; what is
// scraped from them is made elsewhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace quire {

// kBounds: a constexpr std::array<double, N>, strictly increasing upper bounds; one more bucket
// holds the rest.
template <const auto& kBounds>
struct Histogram {
  std::array<uint64_t, kBounds.size() + 1> buckets{};  // not cumulative
  uint64_t count = 0;
  double sum = 0;

  void Observe(double value) {
    const auto* it = std::lower_bound(kBounds.begin(), kBounds.end(), value);
    ++buckets[static_cast<size_t>(it - kBounds.begin())];
    ++count;
    sum += value;
  }
  static constexpr std::span<const double> bounds() { return kBounds; }
};

// Whoever gives the bounds keeps them for as long as there are copies.
struct LatencyCounts {
  static constexpr size_t kMostBounds = 64;

  explicit LatencyCounts(std::span<const double> b) : bounds(b) {}

  std::span<const double> bounds;  // seconds, strictly increasing, at most kMostBounds
  std::array<uint64_t, kMostBounds + 1>
      buckets{};  // not cumulative; the last in use holds the rest
  uint64_t count = 0;
  double sum = 0;

  void Observe(double value) {
    const auto it = std::ranges::lower_bound(bounds, value);
    ++buckets[static_cast<size_t>(it - bounds.begin())];
    ++count;
    sum += value;
  }
};

// Bounds that several rooms use. Seconds unless named otherwise.
inline constexpr std::array<double, 23> kLatencyBounds = {
    .001, .0025, .005, .01, .02, .04, .06, .08, .1,  .25, .5,  .75,
    1,    2.5,   5,    7.5, 10,  20,  40,  80,  160, 640, 2560};
inline constexpr std::array<double, 25> kInterTokenBounds = {
    .0005, .001, .002, .003, .005, .0075, .01, .025, .05, .075, .1, .15, .2,
    .3,    .4,   .5,   .75,  1,    2.5,   5,   7.5,  10,  20,   40, 80};
inline constexpr std::array<double, 27> kDurationBounds = {
    .005, .01, .025, .05, .1, .2, .3, .5,  .8,  1,   1.5, 2,    2.5, 5,
    10,   15,  20,   30,  40, 50, 60, 120, 240, 480, 960, 1920, 7680};
inline constexpr auto kStepBounds = [] {  // 1e-4 x 2^k
  std::array<double, 18> b{};
  double v = 1e-4;
  for (double& x : b) {
    x = v;
    v *= 2;
  }
  return b;
}();
inline constexpr auto kPowerBounds = [] {  // counts 1 2 4 .. 4096
  std::array<double, 13> b{};
  double v = 1;
  for (double& x : b) {
    x = v;
    v *= 2;
  }
  return b;
}();
inline constexpr std::array<double, 19> kTokenBounds = {  // counts 1-2-5
    1,    2,    5,     10,    20,    50,     100,    200,    500,    1000,
    2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000};

}  // namespace quire
