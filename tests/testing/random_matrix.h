// Random weight matrices in the bytes of a model file, for tests. Values have a standard deviation
// near 1 / sqrt(cols), so that products of unit rows stay near one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "runtime/tensor/dtype.h"

namespace quire {

// Row-major file bytes of a [rows, cols] matrix of `type`; cols is a multiple of the type's block.
std::vector<std::byte> RandomMatrix(DType type, int32_t rows, int32_t cols,
                                    std::mt19937_64& random);

}  // namespace quire
