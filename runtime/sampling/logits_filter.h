// top_k, top_p and min_p on a short list of candidates, and the draw. Pure functions on
// caller-owned storage, any thread; allocate nothing. Ties are broken by the lower id everywhere.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/ids.h"

namespace quire {

struct Candidate {
  float logit;
  int32_t id;
  float mass;  // e((logit - best) / temperature): 1 for the best, never negative
};

using Candidates = std::span<Candidate>;

// Likelier first.
inline bool Better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// The cuts reorder `work`, a copy of the candidates; the filters drop the rest and keep the order,
// so a list by ascending id stays one without sorting.

// The k-th best. 1 <= k <= size.
Candidate RankCut(Candidates work, int32_t k);
// The last of the fewest best ones whose mass reaches `mass`; the worst of all if they do not reach
// it together. In expected linear time. work is not empty.
Candidate MassCut(Candidates work, double mass);

// Both return what is kept, at the front of the storage.
Candidates KeepUpTo(Candidates all, const Candidate& cut);  // cut and what is better
Candidates KeepAtLeast(Candidates all, float mass);

double TotalMass(Candidates all);  // a fixed order of additions
// The first candidate whose running sum exceeds u * TotalMass, in the order given. all is not
// empty, u in [0, 1).
TokenId DrawFrom(Candidates all, double u);

}  // namespace quire
