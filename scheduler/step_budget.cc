#include "scheduler/step_budget.h"

#include <algorithm>

namespace quire {

int32_t ShareBudget(std::span<const int32_t> uncomputed, int32_t budget,
                    std::span<int32_t> grants) {
  int32_t left = budget;
  for (size_t i = 0; i < uncomputed.size(); ++i) {
    grants[i] = (i == 0 || uncomputed[i] == 1) && left > 0 ? 1 : 0;
    left -= grants[i];
  }
  for (size_t i = 0; i < uncomputed.size(); ++i) {
    const int32_t more = std::min(left, uncomputed[i] - grants[i]);
    grants[i] += more;
    left -= more;
  }
  return budget - left;
}

}  // namespace quire
