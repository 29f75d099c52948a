// y = W x for packed weights and any number of activation rows: the matrix products of the model.
// An output element is computed by one thread with one arithmetic whatever the row count, the panel
// range or the instruction set, so its bits depend only on its weights and its activation row. Any
// thread, each with its own scratch; nothing is owned, allocated or locked.
//
// Arithmetic. Quantised weights: the exact int32 product sum s of each 32-block, then in ascending
// order of blocks f = fma(s, d_w * d_a, f) and, for types with a minimum, f = fma(m_w, d_a *
// sum(q_a), f); types with 16-k scales do the first step per half block. Float weights: f =
// fma(w[k], x[k], f) in ascending k. f starts at 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/cpu_features.h"
#include "runtime/kernels/pack.h"
#include "runtime/kernels/quantize.h"

namespace quire {

// Half-open range of panels of 16 outputs.
struct PanelRange {
  int32_t begin, end;
  // Where this thread reads weights after these panels (say, its first panel of the next matrix);
  // null: the panels that follow in memory. Its first kilobytes are prefetched while these panels
  // end: a hint, worth most for few rows.
  const std::byte* next = nullptr;
};

struct LinearOutput {
  float* y;        // y[row * stride + output], outputs counted from the start of the matrix
  int64_t stride;  // floats
};

// Whether products with this type read ActRows::q and scales (else f32).
constexpr bool UsesQuantizedActivations(DType type) {
  return type != DType::kF32 && type != DType::kF16 && type != DType::kBF16;
}

// Scratch bytes that Linear needs, 64-byte aligned; independent of the matrix.
size_t LinearScratchBytes();

// Writes outputs [16 * panels.begin, min(16 * panels.end, w.rows)) of all x.rows rows; x.cols ==
// w.cols.
void Linear(const PackedMatrix& w, PanelRange panels, const ActRows& x, const LinearOutput& out,
            std::span<std::byte> scratch);

// Linear with the kernels of one level instead of the active one; level <= DetectedIsa(). For
// tests: must give the same bits.
struct LinearKernels;
const LinearKernels& LinearKernelsOf(IsaLevel isa);
struct LinearCall {
  const PackedMatrix& w;
  PanelRange panels;
  const ActRows& x;
  LinearOutput out;
  std::span<std::byte> scratch;
};
void LinearWith(const LinearKernels& kernels, const LinearCall& call);

}  // namespace quire
