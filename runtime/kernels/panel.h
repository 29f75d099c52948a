// What the dispatcher hands to a panel kernel: full panels, all rows, plain pointers. Internal to
// the linear kernels; any thread.
#pragma once

#include <cstdint>

#include "runtime/kernels/quantize.h"

namespace quire {

struct PanelJob {
  const uint8_t* w;  // first panel
  const uint8_t*
      next;  // what the thread reads after the last panel; null: what follows it in memory
  int64_t panel_bytes;  // stride between panels
  int32_t panels;
  int32_t cols;      // k
  int32_t rows;      // activation rows
  const int8_t* q;   // quantised types: rows of int8 and their scales
  int64_t q_stride;  // bytes
  const ActScale* scales;
  int64_t scale_stride;  // records
  const float* x;        // float types: f32 rows
  int64_t x_stride;      // floats
  float* y;              // [rows][y_stride], 16 columns per panel, all written
  int64_t y_stride;      // floats
  uint8_t* scratch;      // kPanelScratchBytes, 64-byte aligned
};

using PanelFn = void (*)(const PanelJob& job);

// One kernel per stored type, in the order of kDTypes.
struct LinearKernels {
  PanelFn f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k;
};

inline constexpr int32_t kPanelScratchBytes = 32 * 1024;

extern const LinearKernels kLinearScalar;
#if defined(__x86_64__)
extern const LinearKernels kLinearAvx2;
extern const LinearKernels kLinearAvx512;
#endif

}  // namespace quire
