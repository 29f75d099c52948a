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

Candidates KeepBest(Candidates all, int32_t k) {
  const auto kept = static_cast<size_t>(k);
  if (kept >= all.size()) return all;
  std::ranges::nth_element(all, all.begin() + static_cast<ptrdiff_t>(kept), Better);
  return all.first(kept);
}

// A selection by mass instead of rank: splits by a pivot, then goes on in the side where the limit lies. Everything
// before `decided` is kept, and has `kept_mass`.
Candidates KeepMass(Candidates all, double mass) {
  size_t decided = 0;
  double kept_mass = 0;
  Candidates open = all;
  while (open.size() > kSortedOutright) {
    const Candidate pivot = MedianOfThree(open);
    const auto worse = std::ranges::partition(open, [&](const Candidate& c) { return !Better(pivot, c); });
    const Candidates better = open.first(open.size() - worse.size());  // pivot included
    const double better_mass = TotalMass(better);
    if (kept_mass + better_mass < mass) {
      kept_mass += better_mass;
      decided += better.size();
      open = open.last(worse.size());
    } else if (better.size() < open.size()) {
      open = better;
    } else {
      break;  // the pivot was the worst of them: the rest is sorted
    }
  }
  std::ranges::sort(open, Better);
  for (size_t i = 0; i < open.size() && kept_mass < mass; ++i) {
    kept_mass += open[i].mass;
    ++decided;
  }
  return all.first(decided);
}

Candidates KeepAtLeast(Candidates all, float mass) {
  const auto dropped = std::ranges::partition(all, [mass](const Candidate& c) { return c.mass >= mass; });
  return all.first(all.size() - dropped.size());
}

void SortById(Candidates all) { std::ranges::sort(all, {}, &Candidate::id); }

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
