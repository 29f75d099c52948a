#include "scheduler/simulate/timeline.h"

#include <algorithm>

namespace quire {
namespace {

void AddTimes(const LoadSample& load, double factor, LoadSample* sum) {
  sum->waiting += load.waiting * factor;
  sum->running += load.running * factor;
  sum->blocks_used += load.blocks_used * factor;
  sum->busy += load.busy * factor;
}

}  // namespace

Timeline::Timeline(int32_t max_bins, int64_t bin_ns)
    : max_bins_(static_cast<size_t>(max_bins)), bin_ns_(bin_ns) {}

void Timeline::Halve() {
  std::vector<LoadSample> wider((areas_.size() + 1) / 2);
  for (size_t i = 0; i < areas_.size(); ++i) AddTimes(areas_[i], 1, &wider[i / 2]);
  areas_ = std::move(wider);
  bin_ns_ *= 2;
}

void Timeline::Add(MonotonicTime begin, MonotonicTime end, const LoadSample& load) {
  while (Nanos(end) > bin_ns_ * static_cast<int64_t>(max_bins_)) Halve();
  for (int64_t at = Nanos(begin); at < Nanos(end);) {
    const int64_t bin = at / bin_ns_;
    const int64_t next = std::min((bin + 1) * bin_ns_, Nanos(end));
    if (static_cast<size_t>(bin) >= areas_.size()) areas_.resize(static_cast<size_t>(bin) + 1);
    AddTimes(load, static_cast<double>(next - at) * 1e-9, &areas_[static_cast<size_t>(bin)]);
    at = next;
  }
}

std::vector<LoadSample> Timeline::Averages() const {
  std::vector<LoadSample> averages(areas_.size());
  for (size_t i = 0; i < areas_.size(); ++i) AddTimes(areas_[i], 1 / bin_seconds(), &averages[i]);
  return averages;
}

LoadSample Timeline::MeanUntil(double seconds) const {
  LoadSample mean;
  if (seconds <= 0) return mean;
  for (const LoadSample& area : areas_) AddTimes(area, 1 / seconds, &mean);
  return mean;
}

}  // namespace quire
