// The Walsh-Hadamard transform of rows, which spreads an outlier over its block. Applied to both
// operands of a dot product it keeps the product (times the block length), and rows without
// outliers lose less when they become integers. Source: QuaRot, Ashkboos et al. 2024. Pure; any
// thread; the same bits on every instruction set.
#pragma once

#include <cstdint>

namespace quire {

// Length of the blocks that a row of `count` elements is transformed in: the largest power of two
// that divides it.
constexpr int32_t HadamardBlock(int32_t count) { return count & -count; }

// x becomes H x block by block, in place, H being the symmetric matrix of +-1 with H H = block * I.
// Sums are not scaled: 1 / block is a power of two that the caller folds in without rounding.
void HadamardInPlace(float* x, int32_t count);

}  // namespace quire
