// Builds Prometheus families from plain numbers. Names lack the prefix `quire_`; a model family
// gets the label `model`. Used within one Collect call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prometheus/metric_family.h"
#include "runtime/base/histogram.h"

namespace quire {

using LabelPairs = std::vector<std::pair<std::string, std::string>>;

class FamilyBuilder {
 public:
  // `model` labels every family added by the functions below that are not named Plain.
  explicit FamilyBuilder(std::string model) : model_(std::move(model)) {}

  // Starts a family; values that follow belong to it.
  FamilyBuilder& Gauge(std::string_view name, std::string_view help);
  FamilyBuilder& Counter(std::string_view name, std::string_view help);
  FamilyBuilder& PlainGauge(std::string_view name, std::string_view help);
  FamilyBuilder& PlainCounter(std::string_view name, std::string_view help);
  FamilyBuilder& HistogramFamily(std::string_view name, std::string_view help);
  // A family whose name has no prefix (process_*).
  FamilyBuilder& Bare(std::string_view name, std::string_view help, bool counter);

  FamilyBuilder& Value(double value, const LabelPairs& labels = {});
  FamilyBuilder& Value(const LatencyCounts& h, const LabelPairs& labels = {}) {
    return AddHistogram({.bounds = h.bounds, .buckets = h.buckets, .count = h.count, .sum = h.sum},
                        labels, 1e300);
  }
  // Buckets above `largest` are left out (they would all be equal).
  template <const auto& kBounds>
  FamilyBuilder& Value(const Histogram<kBounds>& h, const LabelPairs& labels = {},
                       double largest = 1e300) {
    return AddHistogram(
        {.bounds = h.bounds(), .buckets = h.buckets, .count = h.count, .sum = h.sum}, labels,
        largest);
  }

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  struct HistogramView {
    std::span<const double> bounds;
    std::span<const uint64_t> buckets;
    uint64_t count;
    double sum;
  };
  FamilyBuilder& Start(std::string name, std::string_view help, prometheus::MetricType type,
                       bool with_model);
  prometheus::ClientMetric& Add(const LabelPairs& labels);
  FamilyBuilder& AddHistogram(const HistogramView& view, const LabelPairs& labels, double largest);

  const std::string model_;
  bool with_model_ = false;
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace quire
