#include "server/config/latency_buckets.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace quire {
namespace {

constexpr size_t kMostBounds = 64;

bool AddBound(const std::string& text, LatencyBuckets* buckets) {
  double bound = 0;
  if (!absl::SimpleAtod(text, &bound) || !std::isfinite(bound) || bound <= 0) return false;
  std::vector<double>& bounds = buckets->bounds;
  if (bounds.size() == kMostBounds || (!bounds.empty() && bound <= bounds.back())) return false;
  bounds.push_back(bound);
  return true;
}

std::string Shortest(double value) {  // that reads back the same
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace

bool ParseLatencyBuckets(const std::vector<std::string>& values, std::vector<LatencyBuckets>* out) {
  std::vector<LatencyBuckets> all;
  for (const std::string& value : values) {
    // A list is split at its commas already where it comes from a variable: a part without a name
    // goes on where the last one ended.
    for (std::string part : std::vector<std::string>(absl::StrSplit(value, ','))) {
      if (const size_t equals = part.find('='); equals != std::string::npos) {
        std::string name = part.substr(0, equals);
        if (name.starts_with("quire_")) name.erase(0, 6);
        if (std::ranges::find(kLatencyFamilies, name) == kLatencyFamilies.end() ||
            std::ranges::find(all, name, &LatencyBuckets::family) != all.end()) {
          return false;
        }
        all.push_back({.family = std::move(name), .bounds = {}});
        part.erase(0, equals + 1);
      }
      if (all.empty() || !AddBound(part, &all.back())) return false;
    }
  }
  *out = std::move(all);
  return true;
}

std::string LatencyBucketsText(const std::vector<LatencyBuckets>& all) {
  std::string text;
  for (const LatencyBuckets& buckets : all) {
    absl::StrAppend(&text, text.empty() ? "" : ",", buckets.family, "=");
    for (size_t i = 0; i < buckets.bounds.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ",", Shortest(buckets.bounds[i]));
    }
  }
  return text;
}

}  // namespace quire
