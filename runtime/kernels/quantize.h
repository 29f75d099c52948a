// Activations as the linear kernels read them: rows of int8 with one scale per 32 values, beside
// the f32 rows they came from. Quantising one row depends on that row alone and gives the same bits
// for every instruction set. Any thread, distinct rows (or distinct 32-blocks) at once; the memory
// is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/cpu_features.h"

namespace quire {

inline constexpr int32_t kQuantBlock = 32;  // values per scale

// Scale of 32 int8 values q: value = d * q, q in [-127, 127].
// A block with NaN or infinity has d = NaN and q = 0, so that every output of its row is NaN.
struct ActScale {
  float d;             // amax / 127; 0 if amax is 0 or below 2^-100
  float d_sum;         // d * sum of q
  int32_t neg_sum;     // -sum of q
  int32_t neg_sum_lo;  // -sum of the first 16 q
};

// View of `rows` activation rows of `cols` values. Quantised weights read q and scales (cols a
// multiple of 32), float weights read f32 (any cols).
struct ActRows {
  int32_t rows = 0, cols = 0;
  const float* f32 = nullptr;  // [rows][f32_stride]; may be null if only quantised weights follow
  int64_t f32_stride = 0;      // floats
  int8_t* q = nullptr;         // [rows][q_stride]; null in a view for float weights only
  int64_t q_stride = 0;        // bytes
  ActScale* scales = nullptr;  // [rows][scale_stride], one per 32 columns
  int64_t scale_stride = 0;    // ActScale records

  // Rows [begin, begin + count).
  ActRows Slice(int32_t begin, int32_t count) const {
    ActRows s = *this;
    s.rows = count;
    if (f32 != nullptr) s.f32 = f32 + begin * f32_stride;
    if (q != nullptr) {
      s.q = q + begin * q_stride;
      s.scales = scales + begin * scale_stride;
    }
    return s;
  }
};

// From so many rows on the fastest kernels compute quantised panels in pairs: ranges of an even
// number of panels leave none over.
inline constexpr int32_t kPairedRows = 64;

// Bytes of the buffer that holds the quantised form of rows x cols. Start it on a 64-byte boundary.
size_t ActBufferBytes(int32_t rows, int32_t cols);
// View over such a buffer; f32 rows may be given too (see ActRows).
ActRows MakeActRows(std::span<std::byte> buffer, int32_t rows, int32_t cols,
                    const float* f32 = nullptr, int64_t f32_stride = 0);

// Quantises act.f32 rows [begin, end) into act.q and act.scales.
void QuantizeRows(const ActRows& act, int32_t begin, int32_t end);
// Row `residual` becomes what the int8 form of row `row` left over, in f32 and int8: the sum of
// both rows' products has about twice the bits. act.f32 is writable memory of the caller. Source:
// residual (two-plane) quantisation.
void QuantizeResidual(const ActRows& act, int32_t row, int32_t residual);
// Quantises x[act.cols] as row `row`.
void QuantizeRow(const float* x, const ActRows& act, int32_t row);
// Quantises x[count] as columns [col, col + count) of row `row`; col and count are multiples of 32.
void QuantizeColumns(const float* x, const ActRows& act, int32_t row, int32_t col, int32_t count);

// The quantiser of one level (<= DetectedIsa()): x[32 * blocks] to q and scales. For tests: same
// bits each.
using QuantizeBlocksFn = void (*)(const float* x, int32_t blocks, int8_t* q, ActScale* scales);
QuantizeBlocksFn QuantizerOf(IsaLevel isa);

}  // namespace quire
