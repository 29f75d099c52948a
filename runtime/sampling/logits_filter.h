// top_k, top_p and min_p on a short list of candidates, and the draw. Pure functions on caller-owned storage, any
// thread; allocate nothing. Ties are broken by the lower id everywhere.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/ids.h"

namespace quire {

struct Candidate {
  float logit;
  int32_t id;
  float mass;  // e((logit - best) / temperature): 1 for the best
};

// All functions return the kept candidates, at the front of the storage.
using Candidates = std::span<Candidate>;

// Likelier first.
inline bool Better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

Candidates KeepBest(Candidates all, int32_t k);
// The fewest best ones whose mass reaches `mass`; all if they do not reach it together. In expected linear time.
Candidates KeepMass(Candidates all, double mass);
Candidates KeepAtLeast(Candidates all, float mass);
void SortById(Candidates all);

double TotalMass(Candidates all);  // summed in the order given
// The first candidate whose running sum exceeds u * TotalMass, in the order given. all is not empty, u in [0, 1).
TokenId DrawFrom(Candidates all, double u);

}  // namespace quire
