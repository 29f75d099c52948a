#include "runtime/sampling/logits_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace quire {
namespace {

constexpr size_t kSortedOutright = 64;
// Longer lists are split by eighths of a power of two of mass first.
constexpr size_t kBucketed = 2048;

// Masses lie in (0, 1]: the exponent and three bits of the fraction number the buckets, heavier
// ones higher.
size_t BucketOf(float mass) { return std::bit_cast<uint32_t>(mass) >> 20; }

struct Narrowed {
  Candidates open;  // one bucket, moved to the front; empty if the mass is not reached at all
  double better_mass = 0;  // of all heavier buckets
};

Narrowed BucketThatReaches(Candidates work, double mass) {
  std::array<double, 1024> sums{};
  for (const Candidate& candidate : work) sums[BucketOf(candidate.mass)] += candidate.mass;
  double better_mass = 0;
  for (size_t bucket = sums.size(); bucket-- > 0;) {
    if (better_mass + sums[bucket] < mass) {
      better_mass += sums[bucket];
      continue;
    }
    const auto rest = std::ranges::remove_if(
        work, [&](const Candidate& c) { return BucketOf(c.mass) != bucket; });
    return {work.first(work.size() - rest.size()), better_mass};
  }
  return {};
}

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

// A selection by mass instead of rank: splits by a pivot, then goes on in the side where the limit
// lies. better_mass is that of all candidates better than `open`.
Candidate MassCut(Candidates work, double mass) {
  double better_mass = 0;
  Candidates open = work;
  if (work.size() > kBucketed) {
    const Candidate worst = *std::ranges::max_element(work, Better);
    const Narrowed narrowed = BucketThatReaches(work, mass);
    if (narrowed.open.empty()) return worst;
    open = narrowed.open;
    better_mass = narrowed.better_mass;
  }
  Candidate cut = open.front();
  while (open.size() > kSortedOutright) {
    const Candidate pivot = MedianOfThree(open);
    const auto worse =
        std::ranges::partition(open, [&](const Candidate& c) { return !Better(pivot, c); });
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
  const auto dropped =
      std::ranges::remove_if(all, [&](const Candidate& c) { return Better(cut, c); });
  return all.first(all.size() - dropped.size());
}

Candidates KeepAtLeast(Candidates all, float mass) {
  const auto dropped =
      std::ranges::remove_if(all, [mass](const Candidate& c) { return !(c.mass >= mass); });
  return all.first(all.size() - dropped.size());
}

double TotalMass(Candidates all) {
  double lane[4] = {};  // four chains of additions instead of one; always in the same order
  for (size_t i = 0; i < all.size(); ++i) lane[i % 4] += static_cast<double>(all[i].mass);
  return (lane[0] + lane[2]) + (lane[1] + lane[3]);
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
