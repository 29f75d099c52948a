// Passes over logits for sampling and logprobs: sums of exponentials, candidates above a threshold,
// counts. Pure functions; any thread; allocate nothing. Each has a plain-loop definition (...Ref)
// that it equals bit for bit on every instruction set: products and sums are separate, and a sum
// has 16 lanes (element i in lane i mod 16, ascending) that are then added 8, 4, 2 and 1 apart.
#pragma once

#include <cstdint>

namespace quire {

inline constexpr int32_t kScanGroup = 256;  // logits of one group; the last group may be shorter
inline constexpr int32_t kScanPad = 16;  // elements that CollectAtLeast may write behind its result

// e(x) = exp((x - max) * scale), and exactly 0 where the argument is below -87, so that no result
// is subnormal. Arguments are never positive and never NaN; e(max) == 1. Relative error < 2e-7.
struct ExpScale {
  float max = 0;
  float scale = 1;
};

// sums[g] = sum of e over group g of x[0, count).
void ExpSumGroups(const float* x, int32_t count, ExpScale e, float* sums);
void ExpSumGroupsRef(const float* x, int32_t count, ExpScale e, float* sums);

// out[i] = e(x[i]); out may be x.
void ExpEach(const float* x, int32_t count, ExpScale e, float* out);
void ExpEachRef(const float* x, int32_t count, ExpScale e, float* out);

// Where CollectAtLeast writes: kScanPad elements more than it finds.
struct CollectOut {
  int32_t* ids;
  float* values;
};
// Writes index + first_id and value of each x[i] >= threshold, ascending, and returns their number.
int32_t CollectAtLeast(const float* x, int32_t count, float threshold, int32_t first_id,
                       CollectOut out);
int32_t CollectAtLeastRef(const float* x, int32_t count, float threshold, int32_t first_id,
                          CollectOut out);

struct CompareCounts {
  int32_t greater = 0, equal = 0;
};
// How many of x[0, count) are greater than and equal to value.
CompareCounts CountAgainst(const float* x, int32_t count, float value);
CompareCounts CountAgainstRef(const float* x, int32_t count, float value);

// The first i with x[i] == value; count if there is none.
int32_t FindFirst(const float* x, int32_t count, float value);
int32_t FindFirstRef(const float* x, int32_t count, float value);

// maxima[g] = the largest of group g, or NaN if any of it is NaN.
void GroupMaxima(const float* x, int32_t count, float* maxima);
void GroupMaximaRef(const float* x, int32_t count, float* maxima);

}  // namespace quire
