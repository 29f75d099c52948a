// Learns what a step costs and chooses the token budget of the next one, so that while somebody
// decodes a step takes no longer than the target: prompts are cut into smaller chunks. Without a
// target the budget is fixed. Pure: what it decides follows from what it was told. Engine thread
// only.
//
// Time of a step = base + decode rows + prefill rows + cached tokens read, each by its own rate,
// fitted to recent steps by recursive least squares with drifting costs (a Kalman filter).
#pragma once

#include <array>
#include <cstdint>

#include "scheduler/service_estimate.h"

namespace quire {

// What a step computes, as far as its cost depends on it.
struct StepShape {
  int32_t decode_rows = 0;   // sequences with one row
  int32_t prefill_rows = 0;  // rows of the others
  int64_t kv_tokens = 0;     // cached tokens that rows read, summed over rows
};

struct PacerOptions {
  int32_t step_tokens = 0;    // most tokens of a step, >= 1
  int64_t target_itl_ns = 0;  // 0: the budget is step_tokens
};

class StepPacer {
 public:
  // Of prompts, in a step that must be short: so they end, however tight the target.
  static constexpr int32_t kMinPrefillRows = 16;

  explicit StepPacer(const PacerOptions& options);

  // Tokens for a step whose decodes are given, and whose prompts have `context` tokens cached.
  int32_t Budget(const StepShape& decodes, int32_t context) const;
  void Observe(const StepShape& step, int64_t nanos);
  void ObserveEnd() { ++ends_; }  // a sequence ended

  double PredictNanos(const StepShape& step) const;
  const ServiceRates& rates() const { return rates_; }

 private:
  static constexpr int kTerms = 4;
  using Terms = std::array<double, kTerms>;
  static Terms TermsOf(const StepShape& step);
  void Fit(const Terms& x, double micros);
  void UpdateRates(const StepShape& step, double seconds);

  PacerOptions options_;
  Terms cost_{};                         // microseconds per term
  std::array<Terms, kTerms> spread_{};   // covariance of cost_, up to a factor
  int64_t observed_ = 0, prefills_ = 0;  // steps; steps with prefill rows
  int64_t ends_ = 0;                     // since the last step
  // Sums over recent steps, older ones fading.
  double prefill_rows_ = 0, prefill_seconds_ = 0, decode_steps_ = 0, decode_seconds_ = 0,
         ended_ = 0, seconds_ = 0;
  ServiceRates rates_;
};

}  // namespace quire
