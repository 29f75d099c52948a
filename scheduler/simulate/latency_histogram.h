// Latencies in buckets half a percent wide: any number of them in fixed memory, quantiles within a
// quarter of a percent, and sums of histograms are exact. A plain value.
#pragma once

#include <cstdint>
#include <vector>

namespace quire {

class LatencyHistogram {
 public:
  void Observe(int64_t nanos);  // below 1 us counts as 1 us
  void Add(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  double Mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }  // seconds
  double Max() const { return max_; }                                                  // seconds
  double Quantile(double q) const;  // seconds; 0 if nothing was observed
  // Part of the observations that is at most `seconds`.
  double PartUpTo(double seconds) const;

 private:
  static int32_t BucketOf(double seconds);
  static double UpperEdge(int32_t bucket);

  std::vector<int64_t> buckets_;  // grown to the largest in use
  int64_t count_ = 0;
  double sum_ = 0, max_ = 0;
};

}  // namespace quire
