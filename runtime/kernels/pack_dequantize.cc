#include <cstring>

#include "absl/log/check.h"
#include "runtime/kernels/pack.h"
#include "runtime/tensor/half.h"

// The definition of the stored types, element by element, from ggml's block layouts
// (ggml-common.h). Products and sums are rounded one by one, as in the reference implementation.
namespace quire {
namespace {

uint32_t At(const std::byte* p, int64_t i) { return static_cast<uint32_t>(p[i]); }
uint32_t Word(const std::byte* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
uint16_t Half(const std::byte* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
float HalfAt(const std::byte* p) { return HalfToFloat(Half(p)); }
int32_t Nibble(const std::byte* p, int i) {
  return static_cast<int32_t>(i < 16 ? At(p, i) & 15 : At(p, i - 16) >> 4);
}

void Q4_0(const std::byte* p, float* out) {
  const float d = HalfAt(p);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(Nibble(p + 2, i) - 8);
}

void Q4_1(const std::byte* p, float* out) {
  const float d = HalfAt(p), m = HalfAt(p + 2);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(Nibble(p + 4, i)) + m;
}

void Q5_0(const std::byte* p, float* out) {
  const float d = HalfAt(p);
  const uint32_t bits = Word(p + 2);
  for (int i = 0; i < 32; ++i) {
    const int32_t q = Nibble(p + 6, i) | static_cast<int32_t>(((bits >> i) & 1) << 4);
    out[i] = d * static_cast<float>(q - 16);
  }
}

void Q5_1(const std::byte* p, float* out) {
  const float d = HalfAt(p), m = HalfAt(p + 2);
  const uint32_t bits = Word(p + 4);
  for (int i = 0; i < 32; ++i) {
    const int32_t q = Nibble(p + 8, i) | static_cast<int32_t>(((bits >> i) & 1) << 4);
    out[i] = d * static_cast<float>(q) + m;
  }
}

void Q8_0(const std::byte* p, float* out) {
  const float d = HalfAt(p);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(At(p, 2 + i)));
}

struct ScaleMin {
  float scale, minimum;
};

ScaleMin KScale(const std::byte* p, int s) {  // p: [d f16][dmin f16][12 bytes of six-bit pairs]
  const std::byte* packed = p + 4;
  uint32_t sc, mn;
  if (s < 4) {
    sc = At(packed, s) & 63;
    mn = At(packed, s + 4) & 63;
  } else {
    sc = (At(packed, s + 4) & 15) | ((At(packed, s - 4) >> 6) << 4);
    mn = (At(packed, s + 4) >> 4) | ((At(packed, s) >> 6) << 4);
  }
  return {HalfAt(p) * static_cast<float>(sc), HalfAt(p + 2) * static_cast<float>(mn)};
}

void Q4_K(const std::byte* p, float* out) {
  const std::byte* q = p + 16;
  for (int s = 0; s < 8; ++s) {
    const ScaleMin k = KScale(p, s);
    for (int i = 0; i < 32; ++i) {
      const uint32_t code = (At(q, 32 * (s / 2) + i) >> (4 * (s % 2))) & 15;
      out[32 * s + i] = k.scale * static_cast<float>(code) - k.minimum;
    }
  }
}

void Q5_K(const std::byte* p, float* out) {
  const std::byte *high = p + 16, *q = p + 48;
  for (int s = 0; s < 8; ++s) {
    const ScaleMin k = KScale(p, s);
    for (int i = 0; i < 32; ++i) {
      const uint32_t low = (At(q, 32 * (s / 2) + i) >> (4 * (s % 2))) & 15;
      const uint32_t code = low | (((At(high, i) >> s) & 1) << 4);
      out[32 * s + i] = k.scale * static_cast<float>(code) - k.minimum;
    }
  }
}

void Q6_K(const std::byte* p, float* out) {
  const std::byte *low = p, *high = p + 128, *scales = p + 192;
  const float d = HalfAt(p + 208);
  for (int s = 0; s < 8; ++s) {
    const int n = s / 4, t = s % 4;
    for (int i = 0; i < 32; ++i) {
      const uint32_t nibble = (At(low, 64 * n + 32 * (t % 2) + i) >> (4 * (t / 2))) & 15;
      const uint32_t code = nibble | (((At(high, 32 * n + i) >> (2 * t)) & 3) << 4);
      const float scale = d * static_cast<float>(static_cast<int8_t>(At(scales, 2 * s + i / 16)));
      out[32 * s + i] = scale * static_cast<float>(static_cast<int32_t>(code) - 32);
    }
  }
}

}  // namespace

void DequantizeBlocks(DType type, const std::byte* src, int64_t count, float* out) {
  const DTypeTraits& traits = TraitsOf(type);
  CHECK_EQ(count % traits.block_elements, 0);
  if (type == DType::kF32) {
    std::memcpy(out, src, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; i += traits.block_elements, src += traits.block_bytes) {
    switch (type) {
      case DType::kF16:
        out[i] = HalfAt(src);
        break;
      case DType::kBF16:
        out[i] = BFloat16ToFloat(Half(src));
        break;
      case DType::kQ4_0:
        Q4_0(src, out + i);
        break;
      case DType::kQ4_1:
        Q4_1(src, out + i);
        break;
      case DType::kQ5_0:
        Q5_0(src, out + i);
        break;
      case DType::kQ5_1:
        Q5_1(src, out + i);
        break;
      case DType::kQ8_0:
        Q8_0(src, out + i);
        break;
      case DType::kQ4_K:
        Q4_K(src, out + i);
        break;
      case DType::kQ5_K:
        Q5_K(src, out + i);
        break;
      case DType::kQ6_K:
        Q6_K(src, out + i);
        break;
      case DType::kF32:
        break;
    }
  }
}

}  // namespace quire
