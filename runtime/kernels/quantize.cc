#include "runtime/kernels/quantize.h"

#include <bit>
#include <cmath>
#include <limits>

#include "absl/log/check.h"
#include "runtime/kernels/isa_entry.h"

// The scalar quantiser is the definition; the others must give its bits.
namespace quire {
namespace {

constexpr int64_t kRowPad = 64;  // keeps row strides off multiples of 4 KiB
// 2^-100: 127 / amax stays finite, d stays normal.
constexpr uint32_t kSmallestAmaxBits = 0x0d800000;
constexpr uint32_t kInfinityBits = 0x7f800000;

void QuantizeBlockScalar(const float* x, int8_t* q, ActScale* scale) {
  // As integers NaN > infinity > all finite, so nothing is lost in the maximum.
  uint32_t amax_bits = 0;
  for (int32_t i = 0; i < kQuantBlock; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7fffffff;
    amax_bits = bits > amax_bits ? bits : amax_bits;
  }
  if (amax_bits < kSmallestAmaxBits || amax_bits >= kInfinityBits) {
    for (int32_t i = 0; i < kQuantBlock; ++i) q[i] = 0;
    const float d = amax_bits < kInfinityBits ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    *scale = {d, d, 0, 0};
    return;
  }
  const float amax = std::bit_cast<float>(amax_bits);
  const float inverse = 127.0f / amax;
  int32_t half[2] = {0, 0};
  for (int32_t i = 0; i < kQuantBlock; ++i) {
    const int32_t v = static_cast<int32_t>(std::lrintf(x[i] * inverse));
    q[i] = static_cast<int8_t>(v);
    half[i / 16] += v;
  }
  const int32_t sum = half[0] + half[1];
  const float d = amax / 127.0f;
  *scale = {d, d * static_cast<float>(sum), -sum, -half[0]};
}

void QuantizeBlocksScalar(const float* x, int32_t blocks, int8_t* q, ActScale* scales) {
  for (int32_t b = 0; b < blocks; ++b) {
    QuantizeBlockScalar(x + b * kQuantBlock, q + b * kQuantBlock, scales + b);
  }
}

int64_t RowBytes(int32_t cols) { return (cols + 63) / 64 * 64 + kRowPad; }
// One spare record keeps row starts off multiples of 4 KiB here too.
int64_t RowScales(int32_t cols) { return ((cols + kQuantBlock - 1) / kQuantBlock + 3) / 4 * 4 + 4; }

}  // namespace

size_t ActBufferBytes(int32_t rows, int32_t cols) {
  return static_cast<size_t>(rows) *
         static_cast<size_t>(RowBytes(cols) +
                             RowScales(cols) * static_cast<int64_t>(sizeof(ActScale)));
}

ActRows MakeActRows(std::span<std::byte> buffer, int32_t rows, int32_t cols, const float* f32,
                    int64_t f32_stride) {
  CHECK_GE(buffer.size(), ActBufferBytes(rows, cols));
  ActRows act{.rows = rows, .cols = cols, .f32 = f32, .f32_stride = f32_stride};
  act.q = reinterpret_cast<int8_t*>(buffer.data());
  act.q_stride = RowBytes(cols);
  act.scales = reinterpret_cast<ActScale*>(buffer.data() + rows * act.q_stride);
  act.scale_stride = RowScales(cols);
  return act;
}

QuantizeBlocksFn QuantizerOf(IsaLevel isa) {
#if defined(__x86_64__)
  if (isa >= IsaLevel::kAvx512) return &QuantizeBlocksAvx512;
  if (isa >= IsaLevel::kAvx2) return &QuantizeBlocksAvx2;
#endif
  (void)isa;
  return &QuantizeBlocksScalar;
}

void QuantizeColumns(const float* x, const ActRows& act, int32_t row, int32_t col, int32_t count) {
  static const QuantizeBlocksFn quantize = QuantizerOf(ActiveIsa());
  DCHECK(col % kQuantBlock == 0 && count % kQuantBlock == 0 && col >= 0 && col + count <= act.cols);
  DCHECK(row >= 0 && row < act.rows);
  quantize(x, count / kQuantBlock, act.q + row * act.q_stride + col,
           act.scales + row * act.scale_stride + col / kQuantBlock);
}

void QuantizeRow(const float* x, const ActRows& act, int32_t row) {
  QuantizeColumns(x, act, row, 0, act.cols);
}

void QuantizeRows(const ActRows& act, int32_t begin, int32_t end) {
  for (int32_t row = begin; row < end; ++row) QuantizeRow(act.f32 + row * act.f32_stride, act, row);
}

}  // namespace quire
