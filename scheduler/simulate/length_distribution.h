// Numbers of tokens as text: "256" always, "64..512" each as likely, "exp:200" by mean,
// "lognormal:200:0.8" by median and sigma. A plain value; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quire {

class LengthDistribution {
 public:
  static constexpr int32_t kMaxTokens = 1 << 20;
  static constexpr std::string_view kWanted = "N, LOW..HIGH, exp:MEAN or lognormal:MEDIAN:SIGMA";

  // INVALID_ARGUMENT with what was wanted.
  static absl::StatusOr<LengthDistribution> Parse(std::string_view text);

  // The length at quantiles u and v, both in [0, 1) and independent; 1..kMaxTokens.
  int32_t Draw(double u, double v) const;

 private:
  enum class Kind : uint8_t { kUniform, kExponential, kLogNormal };

  Kind kind_ = Kind::kUniform;
  double a_ = 1, b_ = 1;  // low, high; mean; median, sigma
};

}  // namespace quire
