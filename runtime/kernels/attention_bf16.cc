#include "runtime/kernels/attention_bf16.h"

#include <cmath>

#include "runtime/tensor/half.h"

namespace quire {
namespace {

float Flush(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

float Bf16At(const uint16_t* values, int64_t index) {
  return Flush(BFloat16ToFloat(values[index]));
}

}  // namespace

void SequentialBf16Product(const Bf16Product& p) {
  const uint16_t* b = reinterpret_cast<const uint16_t*>(p.b);
  for (int32_t row = 0; row < p.rows; ++row) {
    const uint16_t* a = p.a + int64_t{row} * p.lda;
    for (int32_t column = 0; column < p.width; ++column) {
      float sum = 0.0f;
      for (int32_t k = 0; k < p.depth; k += 2) {
        const int64_t pair = 2 * (int64_t{k / 2} * p.ldb + column);
        sum = Flush(std::fmaf(Bf16At(a, k + 1), Bf16At(b, pair + 1), sum));
        sum = Flush(std::fmaf(Bf16At(a, k), Bf16At(b, pair), sum));
      }
      float& c = p.c[int64_t{row} * p.ldc + column];
      c = p.add ? sum + c : sum;
    }
  }
}

void SequentialRoundToBf16(const float* src, int32_t count, uint16_t* dst) {
  for (int32_t i = 0; i < count; ++i) dst[i] = FloatToBFloat16(src[i]);
}

}  // namespace quire
