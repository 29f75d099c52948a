#include "scheduler/simulate/length_distribution.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/absl_view.h"
#include "scheduler/simulate/text_parse.h"

namespace quire {
namespace {

bool ParseTokens(std::string_view text, double* value) {
  return ParseNumber(text, value) && *value >= 1 && *value <= LengthDistribution::kMaxTokens;
}

}  // namespace

absl::StatusOr<LengthDistribution> LengthDistribution::Parse(std::string_view text) {
  LengthDistribution d;
  bool good = false;
  if (const size_t dots = text.find(".."); dots != std::string_view::npos) {
    good = ParseTokens(text.substr(0, dots), &d.a_) && ParseTokens(text.substr(dots + 2), &d.b_) &&
           d.a_ <= d.b_ && d.a_ == std::floor(d.a_) && d.b_ == std::floor(d.b_);
  } else if (text.starts_with("exp:")) {
    d.kind_ = Kind::kExponential;
    good = ParseTokens(text.substr(4), &d.a_);
  } else if (text.starts_with("lognormal:")) {
    d.kind_ = Kind::kLogNormal;
    std::vector<std::string_view> parts;
    SplitFields(text.substr(10), ':', &parts);
    good = parts.size() == 2 && ParseTokens(parts[0], &d.a_) && ParseNumber(parts[1], &d.b_) &&
           d.b_ >= 0 && d.b_ <= 5;
  } else {
    good = ParseTokens(text, &d.a_) && d.a_ == std::floor(d.a_);
    d.b_ = d.a_;
  }
  if (good) return d;
  return absl::InvalidArgumentError(
      absl::StrCat("got '", absl::CHexEscape(View(text.substr(0, 64))), "', wanted ", View(kWanted),
                   " with 1..", kMaxTokens, " tokens and sigma 0..5"));
}

int32_t LengthDistribution::Draw(double u, double v) const {
  double tokens = 0;
  switch (kind_) {
    case Kind::kUniform:
      tokens = a_ + std::floor(u * (b_ - a_ + 1));
      break;
    case Kind::kExponential:
      tokens = std::round(-a_ * std::log1p(-u));
      break;
    case Kind::kLogNormal: {
      const double normal = std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * std::numbers::pi * v);
      tokens = std::round(a_ * std::exp(b_ * normal));
      break;
    }
  }
  return static_cast<int32_t>(std::clamp(tokens, 1.0, double{kMaxTokens}));
}

}  // namespace quire
