#include "scheduler/step_pacer.h"

#include <algorithm>
#include <cmath>

#include "absl/log/check.h"

namespace quire {
namespace {

// Steps fade out of the rates within a few hundred; ends are rare, and fade more slowly.
constexpr double kForgetRate = 0.98, kForgetEnds = 0.995;
// Of the target: the fit is a mean, and half of all steps take longer than their mean.
constexpr double kMargin = 0.9;
// One step that the machine took away from us must not move the fit far.
constexpr double kMostSurprise = 2;
constexpr int64_t kTrustAfter = 16;
// Variances of costs, in units of the variance of one measured step: at first and at most, and what
// each step adds, since costs drift. A cost of which nothing is seen for long becomes uncertain up
// to the bound, and keeps its value; the others go on following (memory: some thirty steps).
constexpr double kMostSpread = 100, kDrift = 1e-3;
// Units that bring the terms near 1.
constexpr double kDecodeUnit = 8, kPrefillUnit = 64, kKvUnit = 16384;

}  // namespace

StepPacer::StepPacer(const PacerOptions& options) : options_(options) {
  CHECK_GE(options.step_tokens, 1);
  CHECK_GE(options.target_itl_ns, 0);
  for (int i = 0; i < kTerms; ++i) spread_[i][i] = kMostSpread;
}

StepPacer::Terms StepPacer::TermsOf(const StepShape& step) {
  return {1, step.decode_rows / kDecodeUnit, step.prefill_rows / kPrefillUnit,
          static_cast<double>(step.kv_tokens) / kKvUnit};
}

double StepPacer::PredictNanos(const StepShape& step) const {
  const Terms x = TermsOf(step);
  double micros = 0;
  for (int i = 0; i < kTerms; ++i) micros += cost_[i] * x[i];
  return std::max(0.0, micros) * 1e3;
}

int32_t StepPacer::Budget(const StepShape& decodes, int32_t context) const {
  if (options_.target_itl_ns == 0 || decodes.decode_rows == 0) return options_.step_tokens;
  const int32_t least = std::min(options_.step_tokens, decodes.decode_rows + kMinPrefillRows);
  if (prefills_ == 0) return least;  // what a prompt costs is not known yet
  const double row_nanos =
      1e3 * (cost_[2] / kPrefillUnit + cost_[3] / kKvUnit * static_cast<double>(context));
  const double room = kMargin * static_cast<double>(options_.target_itl_ns) - PredictNanos(decodes);
  if (room <= 0) return least;
  if (row_nanos * options_.step_tokens <= room) return options_.step_tokens;
  const int32_t budget = decodes.decode_rows + static_cast<int32_t>(room / row_nanos);
  return std::clamp(budget, least, options_.step_tokens);
}

void StepPacer::Observe(const StepShape& step, int64_t nanos) {
  const double seconds = static_cast<double>(std::max<int64_t>(nanos, 0)) * 1e-9;
  UpdateRates(step, seconds);
  const Terms x = TermsOf(step);
  double micros = seconds * 1e6;
  if (observed_ >= kTrustAfter) {
    const double usual =
        std::max(PredictNanos(step) * 1e-3, 1e6 * decode_seconds_ / std::max(1.0, decode_steps_));
    if (usual > 0) micros = std::min(micros, kMostSurprise * usual);
  }
  Fit(x, micros);
  ++observed_;
  prefills_ += step.prefill_rows > 0;
}

void StepPacer::Fit(const Terms& x, double micros) {
  Terms gain{};
  double scale = 1, error = micros;
  for (int i = 0; i < kTerms; ++i) {
    for (int j = 0; j < kTerms; ++j) gain[i] += spread_[i][j] * x[j];
    scale += x[i] * gain[i];
    error -= x[i] * cost_[i];
  }
  Terms shrink{};
  for (int i = 0; i < kTerms; ++i) {
    cost_[i] += gain[i] / scale * error;
    for (int j = 0; j < kTerms; ++j) spread_[i][j] -= gain[i] * gain[j] / scale;
    spread_[i][i] += kDrift;
    shrink[i] = std::min(1.0, std::sqrt(kMostSpread / spread_[i][i]));
  }
  for (int i = 0; i < kTerms; ++i) {
    for (int j = 0; j < kTerms; ++j) spread_[i][j] *= shrink[i] * shrink[j];
  }
}

void StepPacer::UpdateRates(const StepShape& step, double seconds) {
  const auto fade = [](double& sum, double more) { sum = kForgetRate * sum + more; };
  if (step.prefill_rows > 0) {
    fade(prefill_rows_, step.prefill_rows);
    fade(prefill_seconds_, seconds);
  }
  if (step.decode_rows > 0) {
    fade(decode_steps_, 1);
    fade(decode_seconds_, seconds);
  }
  ended_ = kForgetEnds * ended_ + static_cast<double>(ends_);
  seconds_ = kForgetEnds * seconds_ + seconds;
  ends_ = 0;
  const auto rate = [](double count, double time) { return time > 0 ? count / time : 0; };
  rates_ = {.prefill_tokens_per_second = rate(prefill_rows_, prefill_seconds_),
            .steps_per_second = rate(decode_steps_, decode_seconds_),
            .ends_per_second = rate(ended_, seconds_)};
}

}  // namespace quire
