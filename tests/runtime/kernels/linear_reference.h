// The linear product by its definition, out of file blocks and without panels: what every kernel
// must equal bit for bit. Slow; for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernels/quantize.h"
#include "runtime/tensor/dtype.h"

namespace quire {

// Scale, minimum and integer code of every element of a row.
struct WeightRow {
  std::vector<float> scale, minimum;  // per 16 elements; minimum 0 if the type has none
  std::vector<int32_t> code;          // per element, offsets of the type taken off
};
WeightRow DecodeRow(DType type, std::span<const std::byte> row, int32_t cols);

// One output: weight row x activation row `act_row`.
float ReferenceOutput(DType type, const WeightRow& w, const ActRows& act, int32_t act_row);
float ReferenceFloatOutput(std::span<const float> w, std::span<const float> x);

}  // namespace quire
