#include "runtime/kernels/rope.h"

#include <cmath>

#include "runtime/kernels/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/rope.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// x[i] = x[i] * own[i] + x[partner of i] * other[i]
void RotateInterleaved(float* x, const float* factors, int32_t dims) {
  const float* own = factors;
  const float* other = factors + dims;
  const hn::CappedTag<float, 16> d;
  const int32_t n = static_cast<int32_t>(hn::Lanes(d));
  int32_t i = 0;
  for (; i + n <= dims; i += n) {
    const auto v = hn::LoadU(d, x + i);
    const auto swapped = hn::Reverse2(d, v);
    hn::StoreU(
        hn::Add(hn::Mul(v, hn::LoadU(d, own + i)), hn::Mul(swapped, hn::LoadU(d, other + i))), d,
        x + i);
  }
  for (; i < dims; i += 2) {
    const float a = x[i], b = x[i + 1];
    x[i] = a * own[i] + b * other[i];
    x[i + 1] = b * own[i + 1] + a * other[i + 1];
  }
}

void RotateHalfSplit(float* x, const float* factors, int32_t dims) {
  const float* own = factors;
  const float* other = factors + dims;
  const int32_t half = dims / 2;
  const hn::CappedTag<float, 16> d;
  const int32_t n = static_cast<int32_t>(hn::Lanes(d));
  int32_t i = 0;
  for (; i + n <= half; i += n) {
    const auto a = hn::LoadU(d, x + i);
    const auto b = hn::LoadU(d, x + half + i);
    hn::StoreU(hn::Add(hn::Mul(a, hn::LoadU(d, own + i)), hn::Mul(b, hn::LoadU(d, other + i))), d,
               x + i);
    hn::StoreU(hn::Add(hn::Mul(b, hn::LoadU(d, own + half + i)),
                       hn::Mul(a, hn::LoadU(d, other + half + i))),
               d, x + half + i);
  }
  for (; i < half; ++i) {
    const float a = x[i], b = x[half + i];
    x[i] = a * own[i] + b * other[i];
    x[half + i] = b * own[half + i] + a * other[half + i];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {
namespace {
constexpr int32_t kFine = 64;
}

HWY_EXPORT(RotateInterleaved);
HWY_EXPORT(RotateHalfSplit);

RopeTable::RopeTable(const RopeOptions& options) : pairs_(options.pairs), dims_(options.dims) {
  const int32_t half = dims_ / 2;
  const int32_t blocks = (options.context_tokens + kFine - 1) / kFine;
  coarse_.resize(static_cast<size_t>(blocks) * half);
  fine_.resize(static_cast<size_t>(kFine) * half);
  for (int32_t i = 0; i < half; ++i) {
    double frequency = std::pow(options.theta, -2.0 * i / dims_) / options.scale;
    if (!options.factors.empty()) frequency /= static_cast<double>(options.factors[i]);
    auto fill = [&](std::vector<Rotation>& table, int32_t rows, int32_t step) {
      for (int32_t r = 0; r < rows; ++r) {
        const double angle = static_cast<double>(r) * step * frequency;
        table[static_cast<size_t>(r) * half + i] = {std::cos(angle), std::sin(angle)};
      }
    };
    fill(coarse_, blocks, kFine);
    fill(fine_, kFine, 1);
  }
}

void RopeTable::FillRow(int32_t position, float* out) const {
  const int32_t half = dims_ / 2;
  const Rotation* coarse = coarse_.data() + static_cast<size_t>(position / kFine) * half;
  const Rotation* fine = fine_.data() + static_cast<size_t>(position % kFine) * half;
  const bool interleaved = pairs_ == RopePairs::kInterleaved;
  float* own = out;
  float* other = out + dims_;
  for (int32_t i = 0; i < half; ++i) {
    const float c = static_cast<float>(coarse[i].cos * fine[i].cos - coarse[i].sin * fine[i].sin);
    const float s = static_cast<float>(coarse[i].sin * fine[i].cos + coarse[i].cos * fine[i].sin);
    const int32_t first = interleaved ? 2 * i : i;
    const int32_t second = interleaved ? 2 * i + 1 : i + half;
    own[first] = own[second] = c;
    other[first] = -s;
    other[second] = s;
  }
}

void ApplyRope(const RopeTable& table, const float* factors, const RopeHeads& heads) {
  const auto rotate = table.pairs() == RopePairs::kInterleaved
                          ? HWY_DYNAMIC_POINTER(RotateInterleaved)
                          : HWY_DYNAMIC_POINTER(RotateHalfSplit);
  for (int32_t h = 0; h < heads.heads; ++h) {
    rotate(heads.x + static_cast<int64_t>(h) * heads.head_dim, factors, table.dims());
  }
}

}  // namespace quire
#endif
