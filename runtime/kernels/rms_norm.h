// Root-mean-square norm of one row. Pure; any thread. The sum of squares is canonical: 16 lanes
// (element i in lane i mod 16), then lanes 8, 4, 2 and 1 apart, so every instruction set gives the
// same bits.
#pragma once

#include <cstdint>

namespace quire {

// out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i], i < count. out may be x.
void RmsNorm(const float* x, const float* weight, float eps, int32_t count, float* out);

// x[i] += delta[i], i < count: the residual stream.
void AddTo(float* x, const float* delta, int32_t count);

}  // namespace quire
