#include "scheduler/step_budget.h"

#include <algorithm>

namespace quire {

int32_t ShareBudget(std::span<const int32_t> uncomputed, std::span<const int32_t> order,
                    int32_t budget, std::span<int32_t> grants) {
  int32_t left = budget;
  std::ranges::fill(grants, 0);
  const auto grant = [&](int32_t i, int32_t most) {
    const int32_t more = std::min(left, most - grants[i]);
    grants[i] += more;
    left -= more;
  };
  if (!grants.empty()) grant(0, 1);
  for (const int32_t i : order) {
    if (uncomputed[i] == 1) grant(i, 1);
  }
  for (const int32_t i : order) grant(i, uncomputed[i]);
  return budget - left;
}

}  // namespace quire
