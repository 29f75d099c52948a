#include "server/metrics/family_builder.h"

namespace quire {

using prometheus::ClientMetric;
using prometheus::MetricType;

FamilyBuilder& FamilyBuilder::Start(std::string name, std::string_view help, MetricType type,
                                    bool with_model) {
  prometheus::MetricFamily family;
  family.name = std::move(name);
  family.help = help;
  family.type = type;
  families_.push_back(std::move(family));
  with_model_ = with_model;
  return *this;
}

FamilyBuilder& FamilyBuilder::Gauge(std::string_view name, std::string_view help) {
  return Start("quire_" + std::string(name), help, MetricType::Gauge, true);
}
FamilyBuilder& FamilyBuilder::Counter(std::string_view name, std::string_view help) {
  return Start("quire_" + std::string(name), help, MetricType::Counter, true);
}
FamilyBuilder& FamilyBuilder::PlainGauge(std::string_view name, std::string_view help) {
  return Start("quire_" + std::string(name), help, MetricType::Gauge, false);
}
FamilyBuilder& FamilyBuilder::PlainCounter(std::string_view name, std::string_view help) {
  return Start("quire_" + std::string(name), help, MetricType::Counter, false);
}
FamilyBuilder& FamilyBuilder::HistogramFamily(std::string_view name, std::string_view help) {
  return Start("quire_" + std::string(name), help, MetricType::Histogram, true);
}
FamilyBuilder& FamilyBuilder::Bare(std::string_view name, std::string_view help, bool counter) {
  return Start(std::string(name), help, counter ? MetricType::Counter : MetricType::Gauge, false);
}

ClientMetric& FamilyBuilder::Add(const LabelPairs& labels) {
  ClientMetric metric;
  if (with_model_) metric.label.push_back({"model", model_});
  for (const auto& [name, value] : labels) metric.label.push_back({name, value});
  families_.back().metric.push_back(std::move(metric));
  return families_.back().metric.back();
}

FamilyBuilder& FamilyBuilder::Value(double value, const LabelPairs& labels) {
  ClientMetric& metric = Add(labels);
  (families_.back().type == MetricType::Counter ? metric.counter.value : metric.gauge.value) =
      value;
  return *this;
}

FamilyBuilder& FamilyBuilder::AddHistogram(const HistogramView& view, const LabelPairs& labels,
                                           double largest) {
  ClientMetric::Histogram& out = Add(labels).histogram;
  out.sample_count = view.count;
  out.sample_sum = view.sum;
  uint64_t cumulative = 0;
  for (size_t i = 0; i < view.bounds.size() && view.bounds[i] <= largest; ++i) {
    cumulative += view.buckets[i];
    out.bucket.push_back({.cumulative_count = cumulative, .upper_bound = view.bounds[i]});
  }
  return *this;  // the serializer adds +Inf from sample_count
}

}  // namespace quire
