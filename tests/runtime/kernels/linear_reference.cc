#include "tests/runtime/kernels/linear_reference.h"

#include <cmath>
#include <cstring>

#include "runtime/kernels/pack.h"
#include "tests/runtime/kernels/quant_blocks.h"

// DequantizeBlocks is checked against another implementation; the parts of a block are told from it
// by changing the block: with d = 1, no minimum and sub-block scales of 1 the values are the codes,
// and so on.
namespace quire {
namespace {

constexpr uint16_t kHalfOne = 0x3c00;

enum class Probe { kCodes, kScales, kMinima };

void PutHalf(std::byte* at, uint16_t half) { std::memcpy(at, &half, sizeof half); }

void SetUnitScales(DType type, std::byte* scales) {
  if (type == DType::kQ6_K) {
    std::memset(scales, 1, 16);
  } else {
    std::memset(scales, 1, 4);      // scales 0..3
    std::memset(scales + 4, 0, 4);  // minima 0..3
    std::memset(scales + 8, 1, 4);  // scales 4..7 low nibble, minima high
  }
}

// Codes whose value, offset taken off, is 1 (or 0).
void SetCodes(DType type, const BlockLayout& layout, int value, std::byte* block) {
  int low = value * 0x11, high = 0;
  if (type == DType::kQ4_0) low = 0x88 + value * 0x11;
  if (type == DType::kQ5_0) high = 0xff;
  if (type == DType::kQ6_K) high = 0xaa;
  if (type == DType::kQ8_0) low = value;
  std::memset(block + layout.codes_at, low, static_cast<size_t>(layout.codes_bytes));
  std::memset(block + layout.high_at, high, static_cast<size_t>(layout.high_bytes));
}

std::vector<float> Probed(DType type, std::span<const std::byte> row, int32_t cols, Probe probe) {
  const BlockLayout layout = BlockLayoutOf(type);
  std::vector<std::byte> copy(row.begin(), row.end());
  const size_t size = static_cast<size_t>(TraitsOf(type).block_bytes);
  for (size_t at = 0; at < copy.size(); at += size) {
    std::byte* block = copy.data() + at;
    if (probe == Probe::kCodes) {
      PutHalf(block + layout.d_at, kHalfOne);
      if (layout.scales_bytes != 0) SetUnitScales(type, block + layout.scales_at);
    } else {
      SetCodes(type, layout, probe == Probe::kScales ? 1 : 0, block);
    }
    if (layout.min_at >= 0 && probe != Probe::kMinima) PutHalf(block + layout.min_at, 0);
  }
  std::vector<float> out(static_cast<size_t>(cols));
  DequantizeBlocks(type, copy.data(), cols, out.data());
  return out;
}

}  // namespace

WeightRow DecodeRow(DType type, std::span<const std::byte> row, int32_t cols) {
  WeightRow w;
  row = row.first(RowBytes(type, cols));
  const std::vector<float> codes = Probed(type, row, cols, Probe::kCodes);
  const std::vector<float> scales = Probed(type, row, cols, Probe::kScales);
  const std::vector<float> minima = Probed(type, row, cols, Probe::kMinima);
  for (const float c : codes) w.code.push_back(static_cast<int32_t>(c));
  for (size_t i = 0; i < scales.size(); i += 16) {
    w.scale.push_back(scales[i]);
    w.minimum.push_back(BlockLayoutOf(type).min_at >= 0 ? minima[i] : 0.0f);
  }
  return w;
}

float ReferenceOutput(DType type, const WeightRow& w, const ActRows& act, int32_t act_row) {
  const int8_t* q = act.q + act_row * act.q_stride;
  const ActScale* scales = act.scales + act_row * act.scale_stride;
  const int32_t step = type == DType::kQ6_K ? 16 : 32;
  float f = 0;
  for (int32_t k = 0; k < act.cols; k += step) {
    int32_t sum = 0;
    for (int32_t i = k; i < k + step; ++i) sum += w.code[static_cast<size_t>(i)] * q[i];
    const ActScale& a = scales[k / 32];
    const size_t s = static_cast<size_t>(k / 16);
    f = std::fma(static_cast<float>(sum), w.scale[s] * a.d, f);
    if (BlockLayoutOf(type).min_at >= 0) f = std::fma(w.minimum[s], a.d_sum, f);
  }
  return f;
}

float ReferenceFloatOutput(std::span<const float> w, std::span<const float> x) {
  float f = 0;
  for (size_t k = 0; k < w.size(); ++k) f = std::fma(w[k], x[k], f);
  return f;
}

}  // namespace quire
