// The definitions of logit_scan.h as plain loops.
#include <bit>
#include <limits>

#include "runtime/kernels/logit_scan.h"
#include "runtime/kernels/logit_scan_exp.h"

namespace quire {
namespace {

float ExpOne(float x, ExpScale e) {
  float y = (x - e.max) * e.scale;
  if (y < scan::kLowest) return 0.0f;
  float n = y * scan::kLog2e;
  n = (n + scan::kRound) - scan::kRound;
  y = y - n * scan::kLn2High;
  y = y - n * scan::kLn2Low;
  float poly = scan::kPoly[0];
  for (int i = 1; i < 6; ++i) poly = poly * y + scan::kPoly[i];
  const float value = (poly * (y * y) + y) + 1.0f;
  return value * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
}

template <typename F>
void ForEachGroup(int32_t count, F&& visit) {
  for (int32_t begin = 0, g = 0; begin < count; begin += kScanGroup, ++g) {
    visit(g, begin, count - begin < kScanGroup ? count - begin : kScanGroup);
  }
}

}  // namespace

void ExpEachRef(const float* x, int32_t count, ExpScale e, float* out) {
  for (int32_t i = 0; i < count; ++i) out[i] = ExpOne(x[i], e);
}

void ExpSumGroupsRef(const float* x, int32_t count, ExpScale e, float* sums) {
  ForEachGroup(count, [&](int32_t g, int32_t begin, int32_t size) {
    float lane[16] = {};
    for (int32_t i = 0; i < size; ++i) lane[i % 16] += ExpOne(x[begin + i], e);
    for (int32_t apart = 8; apart > 0; apart /= 2) {
      for (int32_t i = 0; i < apart; ++i) lane[i] += lane[i + apart];
    }
    sums[g] = lane[0];
  });
}

int32_t CollectAtLeastRef(const float* x, int32_t count, float threshold, int32_t first_id,
                          CollectOut out) {
  int32_t found = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (!(x[i] >= threshold)) continue;
    out.ids[found] = first_id + i;
    out.values[found++] = x[i];
  }
  return found;
}

CompareCounts CountAgainstRef(const float* x, int32_t count, float value) {
  CompareCounts counts;
  for (int32_t i = 0; i < count; ++i) {
    counts.greater += x[i] > value;
    counts.equal += x[i] == value;
  }
  return counts;
}

int32_t FindFirstRef(const float* x, int32_t count, float value) {
  int32_t i = 0;
  while (i < count && x[i] != value) ++i;
  return i;
}

void GroupMaximaRef(const float* x, int32_t count, float* maxima) {
  ForEachGroup(count, [&](int32_t g, int32_t begin, int32_t size) {
    float best = -std::numeric_limits<float>::infinity();
    bool nan = false;
    for (int32_t i = begin; i < begin + size; ++i) {
      nan |= x[i] != x[i];
      best = x[i] > best ? x[i] : best;
    }
    maxima[g] = nan ? std::numeric_limits<float>::quiet_NaN() : best;
  });
}

}  // namespace quire
