// Load over time, averaged in equal bins that get wider as time goes on, so that a run of any
// length takes the same memory. A plain value; loads of several replicas add up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/clock.h"

namespace quire {

// Averages over a bin, or the state during an interval.
struct LoadSample {
  double waiting = 0, running = 0;  // sequences
  double blocks_used = 0;
  double busy = 0;  // replicas inside a step
};

class Timeline {
 public:
  Timeline() : Timeline(192, 10'000'000) {}
  // At most `max_bins` bins (even), of `bin_ns` at first.
  Timeline(int32_t max_bins, int64_t bin_ns);

  // `load` from `begin` to `end`.
  void Add(MonotonicTime begin, MonotonicTime end, const LoadSample& load);

  double bin_seconds() const { return static_cast<double>(bin_ns_) * 1e-9; }
  std::vector<LoadSample> Averages() const;
  LoadSample MeanUntil(double seconds) const;  // over [0, seconds)

 private:
  void Halve();  // pairs of bins become one

  size_t max_bins_;
  int64_t bin_ns_;
  std::vector<LoadSample> areas_;  // times seconds
};

}  // namespace quire
