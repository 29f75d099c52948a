#include "runtime/kernels/pack.h"

#include <cstring>

#include "absl/log/check.h"
#include "runtime/kernels/panel_format.h"
#include "runtime/tensor/half.h"

// Reads one row out of a panel and dequantises it with the same operations as DequantizeBlocks, so
// the bits are equal: an embedding row may come from either.
namespace quire {
namespace {

constexpr int32_t kLine = 64;

float HalfOfRow(const std::byte* halves, int32_t row) {
  uint16_t v;
  std::memcpy(&v, halves + 2 * row, sizeof v);
  return HalfToFloat(v);
}
uint32_t At(const std::byte* p, int32_t i) { return static_cast<uint32_t>(p[i]); }

struct RowScales {
  float scale[2];  // of k 0..15 and 16..31
  float add;       // minimum, or 0
  int32_t offset;  // subtracted from the code
};

RowScales ScalesOfBlock(DType type, const std::byte* header, const std::byte* scales, int32_t row) {
  switch (type) {
    case DType::kQ4_K:
    case DType::kQ5_K: {
      const float d = HalfOfRow(header, row) * static_cast<float>(At(scales, row));
      return {{d, d}, HalfOfRow(header + 32, row) * static_cast<float>(At(scales, 16 + row)), 0};
    }
    case DType::kQ6_K: {
      const float d = HalfOfRow(header, row);
      const auto signed_at = [&](int32_t i) {
        return static_cast<float>(static_cast<int8_t>(At(scales, i)));
      };
      return {{d * signed_at(row), d * signed_at(16 + row)}, 0, 32};
    }
    default:
      break;
  }
  const float d = HalfOfRow(scales, row);
  const bool has_minimum = type == DType::kQ4_1 || type == DType::kQ5_1;
  const int32_t offset = type == DType::kQ4_0 ? 8 : type == DType::kQ5_0 ? 16 : 0;
  return {{d, d}, has_minimum ? HalfOfRow(scales + 32, row) : 0.0f, offset};
}

// Code of element i (0..31) of row `row`.
int32_t Code(DType type, const PanelFormat& format, const std::byte* plane, int32_t row,
             int32_t i) {
  const std::byte* quants = plane + format.plane_bytes;
  const int32_t g = i / 4, byte = 4 * row + i % 4;
  if (type == DType::kQ8_0) return static_cast<int8_t>(At(quants, kLine * g + byte));
  uint32_t code = At(quants, kLine * (g % 4) + byte);
  code = g < 4 ? code & 15 : code >> 4;
  if (format.plane_bytes == 64) code |= ((At(plane, byte) >> g) & 1) << 4;
  if (format.plane_bytes == 128)
    code |= ((At(plane, kLine * (g / 4) + byte) >> (2 * (g % 4))) & 3) << 4;
  return static_cast<int32_t>(code);
}

void UnpackQuantRow(DType type, const std::byte* panel, int32_t row, int32_t cols, float* out) {
  const PanelFormat format = PanelFormatOf(type);
  const bool adds = type == DType::kQ4_1 || type == DType::kQ5_1 || format.blocks_per_record == 8;
  const int32_t records = cols / (32 * format.blocks_per_record);
  for (int32_t r = 0; r < records; ++r, panel += format.RecordBytes()) {
    for (int32_t s = 0; s < format.blocks_per_record; ++s, out += 32) {
      const std::byte* scales = panel + format.header_bytes + s * format.BlockBytes();
      const RowScales k = ScalesOfBlock(type, panel, scales, row);
      for (int32_t i = 0; i < 32; ++i) {
        const int32_t q = Code(type, format, scales + format.scale_bytes, row, i) - k.offset;
        const float v = k.scale[i / 16] * static_cast<float>(q);
        out[i] = adds && type != DType::kQ6_K ? v + k.add : v;
      }
    }
  }
}

}  // namespace

void UnpackRow(const PackedMatrix& matrix, int32_t row, float* out) {
  DCHECK(row >= 0 && row < matrix.rows);
  const std::byte* panel = matrix.panel(row / kPanelRows);
  const int32_t r = row % kPanelRows;
  if (PanelFormatOf(matrix.type).quant_bytes != 0) {
    UnpackQuantRow(matrix.type, panel, r, matrix.cols, out);
    return;
  }
  for (int32_t k = 0; k < matrix.cols; ++k) {
    const size_t i = static_cast<size_t>(k) * kPanelRows + r;
    if (matrix.type == DType::kF32) {
      std::memcpy(out + k, panel + 4 * i, 4);
      continue;
    }
    uint16_t bits;
    std::memcpy(&bits, panel + 2 * i, 2);
    out[k] = matrix.type == DType::kF16 ? HalfToFloat(bits) : BFloat16ToFloat(bits);
  }
}

}  // namespace quire
