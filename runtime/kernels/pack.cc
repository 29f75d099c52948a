#include "runtime/kernels/pack.h"

#include <algorithm>
#include <cstring>

#include "absl/log/check.h"
#include "runtime/kernels/panel_format.h"

// File blocks and panel blocks hold the same codes; packing only moves them. `W` below is a 32-bit
// word: 4 consecutive k of one row, which is the unit of a panel line. File data has no alignment.
namespace quire {
namespace {

constexpr size_t kLine = 64;

uint32_t LoadW(const std::byte* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void StoreW(std::byte* line, int32_t row, uint32_t v) { std::memcpy(line + 4 * row, &v, sizeof v); }
void CopyHalf(std::byte* halves, int32_t row, const std::byte* src) {
  std::memcpy(halves + 2 * row, src, 2);
}

// The four bits of a nibble as the low bits of four bytes.
constexpr uint32_t SpreadNibble(uint32_t n) {
  return (n & 1) | ((n & 2) << 7) | ((n & 4) << 14) | ((n & 8) << 21);
}

// Where one 32-block of one row goes.
struct BlockOut {
  std::byte* scales;
  std::byte* plane;
  std::byte* quants;
  int32_t row;
};

// Q4_0, Q4_1, Q5_0, Q5_1: [d f16][m f16][fifth bits u32][16 bytes: element j low, j + 16 high].
void PackNibbleBlock(DType type, const std::byte* src, const BlockOut& out) {
  CopyHalf(out.scales, out.row, src);
  src += 2;
  if (type == DType::kQ4_1 || type == DType::kQ5_1) {
    CopyHalf(out.scales + 32, out.row, src);
    src += 2;
  }
  if (type == DType::kQ5_0 || type == DType::kQ5_1) {
    const uint32_t bits = LoadW(src);
    src += 4;
    uint32_t plane = 0;
    for (int g = 0; g < 8; ++g) plane |= SpreadNibble((bits >> (4 * g)) & 15) << g;
    StoreW(out.plane, out.row, plane);
  }
  for (int g = 0; g < 4; ++g) StoreW(out.quants + kLine * g, out.row, LoadW(src + 4 * g));
}

void PackQ8Block(const std::byte* src, const BlockOut& out) {
  CopyHalf(out.scales, out.row, src);
  for (int g = 0; g < 8; ++g) StoreW(out.quants + kLine * g, out.row, LoadW(src + 2 + 4 * g));
}

// Six-bit scale and minimum of sub-block s of Q4_K and Q5_K.
void KScales(const std::byte* packed, int32_t s, std::byte* scale, std::byte* minimum) {
  const auto at = [packed](int32_t i) { return static_cast<uint32_t>(packed[i]); };
  uint32_t sc, mn;
  if (s < 4) {
    sc = at(s) & 63;
    mn = at(s + 4) & 63;
  } else {
    sc = (at(s + 4) & 15) | ((at(s - 4) >> 6) << 4);
    mn = (at(s + 4) >> 4) | ((at(s) >> 6) << 4);
  }
  *scale = static_cast<std::byte>(sc);
  *minimum = static_cast<std::byte>(mn);
}

// Sub-block s of a Q4_K or Q5_K block: [d][dmin][12 scales][Q5: 32 bytes of fifth bits][128 nibble
// bytes].
void PackKBlock(DType type, const std::byte* src, int32_t s, const BlockOut& out) {
  KScales(src + 4, s, out.scales + out.row, out.scales + 16 + out.row);
  src += 16;
  if (type == DType::kQ5_K) {
    uint32_t plane = 0;
    for (int g = 0; g < 8; ++g) plane |= ((LoadW(src + 4 * g) >> s) & 0x01010101) << g;
    StoreW(out.plane, out.row, plane);
    src += 32;
  }
  const std::byte* nibbles = src + 32 * (s / 2);
  const int shift = 4 * (s % 2);
  for (int g = 0; g < 4; ++g) {
    const uint32_t low = (LoadW(nibbles + 4 * g) >> shift) & 0x0f0f0f0f;
    const uint32_t high = (LoadW(nibbles + 16 + 4 * g) >> shift) & 0x0f0f0f0f;
    StoreW(out.quants + kLine * g, out.row, low | (high << 4));
  }
}

// Sub-block s of a Q6_K block: [128 low nibble bytes][64 bytes of two-bit pairs][16 scales s8][d].
void PackQ6KBlock(const std::byte* src, int32_t s, const BlockOut& out) {
  out.scales[out.row] = src[192 + 2 * s];
  out.scales[16 + out.row] = src[192 + 2 * s + 1];
  const int n = s / 4, t = s % 4;
  const std::byte* nibbles = src + 64 * n + 32 * (t % 2);
  const std::byte* pairs = src + 128 + 32 * n;
  uint32_t plane[2] = {0, 0};
  for (int g = 0; g < 8; ++g)
    plane[g / 4] |= ((LoadW(pairs + 4 * g) >> (2 * t)) & 0x03030303) << (2 * (g % 4));
  StoreW(out.plane, out.row, plane[0]);
  StoreW(out.plane + kLine, out.row, plane[1]);
  const int shift = 4 * (t / 2);
  for (int g = 0; g < 4; ++g) {
    const uint32_t low = (LoadW(nibbles + 4 * g) >> shift) & 0x0f0f0f0f;
    const uint32_t high = (LoadW(nibbles + 16 + 4 * g) >> shift) & 0x0f0f0f0f;
    StoreW(out.quants + kLine * g, out.row, low | (high << 4));
  }
}

void PackHeader(DType type, const std::byte* src, std::byte* header, int32_t row) {
  if (type == DType::kQ6_K) {
    CopyHalf(header, row, src + 208);
  } else {
    CopyHalf(header, row, src);
    CopyHalf(header + 32, row, src + 2);
    header[32 + 2 * row + 1] ^= std::byte{0x80};  // -dmin, so that all minima are added
  }
}

// One row of file data into row `row` of a panel.
void PackQuantRow(DType type, const std::byte* src, int32_t cols, std::byte* panel, int32_t row) {
  const PanelFormat format = PanelFormatOf(type);
  const DTypeTraits& traits = TraitsOf(type);
  const int32_t records = cols / traits.block_elements;
  for (int32_t r = 0; r < records; ++r, src += traits.block_bytes, panel += format.RecordBytes()) {
    if (format.header_bytes != 0) PackHeader(type, src, panel, row);
    for (int32_t s = 0; s < format.blocks_per_record; ++s) {
      std::byte* scales = panel + format.header_bytes + s * format.BlockBytes();
      std::byte* plane = scales + format.scale_bytes;
      const BlockOut out{scales, plane, plane + format.plane_bytes, row};
      switch (type) {
        case DType::kQ8_0:
          PackQ8Block(src, out);
          break;
        case DType::kQ4_K:
        case DType::kQ5_K:
          PackKBlock(type, src, s, out);
          break;
        case DType::kQ6_K:
          PackQ6KBlock(src, s, out);
          break;
        default:
          PackNibbleBlock(type, src, out);
          break;
      }
    }
  }
}

template <typename T>
void PackFloatRow(const std::byte* src, int32_t cols, std::byte* panel, int32_t row) {
  for (int32_t k = 0; k < cols; ++k) {
    std::memcpy(panel + (static_cast<size_t>(k) * kPanelRows + row) * sizeof(T),
                src + k * sizeof(T), sizeof(T));
  }
}

}  // namespace

size_t PanelBytes(DType type, int32_t cols) {
  const DTypeTraits& traits = TraitsOf(type);
  CHECK_EQ(cols % traits.block_elements, 0) << traits.name << " rows of " << cols;
  const PanelFormat format = PanelFormatOf(type);
  const size_t bytes =
      format.quant_bytes == 0
          ? static_cast<size_t>(cols) * kPanelRows * traits.block_bytes
          : static_cast<size_t>(cols / traits.block_elements) * format.RecordBytes();
  return (bytes + kLine - 1) / kLine * kLine;
}

size_t PackedBytes(DType type, int32_t rows, int32_t cols) {
  return PanelBytes(type, cols) * static_cast<size_t>((rows + kPanelRows - 1) / kPanelRows);
}

void PackPanels(std::span<const std::byte> src, const PackedMatrix& shape, int32_t panel_begin,
                int32_t panel_end, std::byte* dst) {
  const DTypeTraits& traits = TraitsOf(shape.type);
  const size_t row_bytes =
      static_cast<size_t>(shape.cols / traits.block_elements) * traits.block_bytes;
  CHECK_GE(src.size(), row_bytes * shape.rows);
  CHECK_EQ(shape.panel_bytes, PanelBytes(shape.type, shape.cols));
  CHECK(panel_begin >= 0 && panel_begin <= panel_end && panel_end <= shape.panels());
  for (int32_t p = panel_begin; p < panel_end; ++p) {
    std::byte* panel = dst + p * shape.panel_bytes;
    const int32_t first = p * kPanelRows;
    const int32_t rows = std::min(kPanelRows, shape.rows - first);
    if (rows < kPanelRows) {
      std::memset(panel, 0, shape.panel_bytes);
    } else {
      std::memset(panel + shape.panel_bytes - kLine, 0, kLine);  // what rounding up to lines leaves
    }
    for (int32_t row = 0; row < rows; ++row) {
      const std::byte* from = src.data() + (first + row) * row_bytes;
      switch (shape.type) {
        case DType::kF32:
          PackFloatRow<float>(from, shape.cols, panel, row);
          break;
        case DType::kF16:
        case DType::kBF16:
          PackFloatRow<uint16_t>(from, shape.cols, panel, row);
          break;
        default:
          PackQuantRow(shape.type, from, shape.cols, panel, row);
          break;
      }
    }
  }
}

}  // namespace quire
