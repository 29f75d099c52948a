#include "scheduler/simulate/cost_fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr size_t kTerms = kCostTermNames.size();

// Minimises |A x - 1|^2 over x >= 0 from the normal equations, one coordinate after the other: each
// has a closed form, and the sum of squares never rises.
CostTerms SolveNonNegative(const std::array<CostTerms, kTerms>& gram, const CostTerms& target) {
  constexpr int kMaxSweeps = 200'000;
  constexpr double kSettled = 1e-13;
  CostTerms x{};
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    double moved = 0;
    for (size_t i = 0; i < kTerms; ++i) {
      if (gram[i][i] <= 0) continue;  // no point has this term
      double residual = target[i];
      for (size_t j = 0; j < kTerms; ++j) residual -= gram[i][j] * x[j];
      const double next = std::max(0.0, x[i] + residual / gram[i][i]);
      moved = std::max(moved, std::abs(next - x[i]));
      x[i] = next;
    }
    if (moved < kSettled) break;
  }
  return x;
}

void SetErrors(std::span<const CostPoint> points, CostFit* fit) {
  std::vector<double> errors;
  double squares = 0;
  for (const CostPoint& point : points) {
    const double predicted = fit->model.Seconds(point.shape);
    errors.push_back(std::abs(predicted - point.seconds) / point.seconds);
    squares += errors.back() * errors.back();
  }
  std::ranges::sort(errors);
  const auto quantile = [&](double q) {
    return errors[static_cast<size_t>(q * static_cast<double>(errors.size() - 1))];
  };
  fit->rms_error = std::sqrt(squares / static_cast<double>(errors.size()));
  fit->p50_error = quantile(0.5);
  fit->p90_error = quantile(0.9);
  fit->max_error = errors.back();
}

}  // namespace

absl::StatusOr<CostFit> FitCost(std::span<const CostPoint> points) {
  if (points.empty()) return absl::InvalidArgumentError("no measured steps to fit");
  std::array<CostTerms, kTerms> gram{};
  CostTerms target{}, scale{};
  // Rows are divided by the measured time: a short step counts as much as a long one.
  std::vector<CostTerms> rows;
  for (const CostPoint& point : points) {
    if (!(point.seconds > 0 && std::isfinite(point.seconds))) {
      return absl::InvalidArgumentError(
          absl::StrCat("a step of ", point.seconds, " seconds cannot be fitted"));
    }
    CostTerms& row = rows.emplace_back(TermsOf(point.shape));
    for (size_t i = 0; i < kTerms; ++i) {
      row[i] /= point.seconds;
      scale[i] += row[i] * row[i];
    }
  }
  // Columns of length 1: coordinate descent then moves all of them at a like pace.
  for (double& s : scale) s = s > 0 ? 1 / std::sqrt(s) : 0;
  for (CostTerms& row : rows) {
    for (size_t i = 0; i < kTerms; ++i) row[i] *= scale[i];
    for (size_t i = 0; i < kTerms; ++i) {
      target[i] += row[i];
      for (size_t j = 0; j < kTerms; ++j) gram[i][j] += row[i] * row[j];
    }
  }
  CostFit fit;
  fit.model.seconds = SolveNonNegative(gram, target);
  for (size_t i = 0; i < kTerms; ++i) fit.model.seconds[i] *= scale[i];
  SetErrors(points, &fit);
  return fit;
}

}  // namespace quire
