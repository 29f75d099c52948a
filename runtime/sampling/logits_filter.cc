#include "runtime/sampling/logits_filter.h"

#include <algorithm>
#include <cstddef>

namespace quire {
namespace {

constexpr size_t kSortedOutright = 64;

const Candidate& MedianOfThree(Candidates part) {
  const Candidate& a = part.front();
  const Candidate& b = part[part.size() / 2];
  const Candidate& c = part.back();
  if (Better(a, b)) return Better(b, c) ? b : Better(a, c) ? c : a;
  return Better(a, c) ? a : Better(b, c) ? c : b;
}

}  // namespace

Candidate RankCut(Candidates work, int32_t k) {
  const auto kth = work.begin() + (k - 1);
  std::ranges::nth_element(work, kth, Better);
  return *kth;
}

// A selection by mass instead of rank: splits by a pivot, then goes on in the side where the limit lies.
// better_mass is that of all candidates better than `open`.
Candidate MassCut(Candidates work, double mass) {
  double better_mass = 0;
  Candidates open = work;
  Candidate cut = open.front();
  while (open.size() > kSortedOutright) {
    const Candidate pivot = MedianOfThree(open);
    const auto worse = std::ranges::partition(open, [&](const Candidate& c) { return !Better(pivot, c); });
    const Candidates upper = open.first(open.size() - worse.size());  // pivot included
    const double upper_mass = TotalMass(upper);
    if (better_mass + upper_mass < mass) {
      better_mass += upper_mass;
      cut = pivot;  // the worst so far that is in
      open = open.last(worse.size());
    } else if (upper.size() < open.size()) {
      open = upper;
    } else {
      break;  // the pivot was the worst of them: the rest is sorted
    }
  }
  std::ranges::sort(open, Better);
  for (const Candidate& candidate : open) {
    if (better_mass >= mass) break;
    better_mass += candidate.mass;
    cut = candidate;
  }
  return cut;
}

Candidates KeepUpTo(Candidates all, const Candidate& cut) {
  const auto dropped = std::ranges::remove_if(all, [&](const Candidate& c) { return Better(cut, c); });
  return all.first(all.size() - dropped.size());
}

Candidates KeepAtLeast(Candidates all, float mass) {
  const auto dropped = std::ranges::remove_if(all, [mass](const Candidate& c) { return !(c.mass >= mass); });
  return all.first(all.size() - dropped.size());
}

double TotalMass(Candidates all) {
  double sum = 0;
  for (const Candidate& candidate : all) sum += candidate.mass;
  return sum;
}

TokenId DrawFrom(Candidates all, double u) {
  const double target = u * TotalMass(all);
  double sum = 0;
  int32_t last = all.front().id;  // for a target that rounding has pushed onto the total
  for (const Candidate& candidate : all) {
    if (candidate.mass == 0) continue;
    sum += candidate.mass;
    last = candidate.id;
    if (sum > target) break;
  }
  return TokenId{last};
}

}  // namespace quire
