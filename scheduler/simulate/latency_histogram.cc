#include "scheduler/simulate/latency_histogram.h"

#include <algorithm>
#include <cmath>

namespace quire {
namespace {

constexpr double kLowest = 1e-6;
constexpr double kGrowth = 1.005;

}  // namespace

int32_t LatencyHistogram::BucketOf(double seconds) {
  if (seconds <= kLowest) return 0;
  return static_cast<int32_t>(std::ceil(std::log(seconds / kLowest) / std::log(kGrowth)));
}

double LatencyHistogram::UpperEdge(int32_t bucket) { return kLowest * std::pow(kGrowth, bucket); }

void LatencyHistogram::Observe(int64_t nanos) {
  const double seconds = static_cast<double>(nanos) * 1e-9;
  const auto bucket = static_cast<size_t>(BucketOf(seconds));
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  ++buckets_[bucket];
  ++count_;
  sum_ += seconds;
  max_ = std::max(max_, seconds);
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  buckets_.resize(std::max(buckets_.size(), other.buckets_.size()));
  for (size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

double LatencyHistogram::Quantile(double q) const {
  if (count_ == 0) return 0;
  const auto rank = std::clamp<int64_t>(
      static_cast<int64_t>(std::ceil(q * static_cast<double>(count_))), 1, count_);
  int64_t below = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    below += buckets_[i];
    if (below < rank) continue;
    // The middle of the bucket, by ratio.
    return std::min(max_, UpperEdge(static_cast<int32_t>(i)) / std::sqrt(kGrowth));
  }
  return max_;
}

double LatencyHistogram::PartUpTo(double seconds) const {
  if (count_ == 0) return 0;
  int64_t below = 0;
  const auto end = static_cast<size_t>(BucketOf(seconds)) + 1;
  for (size_t i = 0; i < std::min(end, buckets_.size()); ++i) below += buckets_[i];
  return static_cast<double>(below) / static_cast<double>(count_);
}

}  // namespace quire
