// Weight panels: rows of a stored matrix rearranged at load into panels of 16 rows, in the layout
// that the linear kernels read. The bytes are the same for all instruction sets. Packing may run on
// many threads, each with its own panel range; PackedMatrix is an immutable view, the memory
// belongs to an arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/tensor/dtype.h"

namespace quire {

inline constexpr int32_t kPanelRows = 16;

// W of y = W x: [rows (outputs), cols (inputs)], stored as panels. Missing rows of the last panel
// are zero.
struct PackedMatrix {
  DType type = DType::kF32;  // stored type of the file; decides the panel format
  int32_t rows = 0, cols = 0;
  size_t panel_bytes = 0;           // stride between panels
  const std::byte* data = nullptr;  // 64-byte aligned

  int32_t panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
  const std::byte* panel(int32_t i) const { return data + static_cast<size_t>(i) * panel_bytes; }
};

// Bytes of one panel, a multiple of 64. cols is a multiple of the type's block.
size_t PanelBytes(DType type, int32_t cols);
// Bytes of the whole matrix.
size_t PackedBytes(DType type, int32_t rows, int32_t cols);

// Packs panels [panel_begin, panel_end) of the row-major file matrix `src` (rows * row bytes of it)
// into dst, the start of the whole packed matrix.
void PackPanels(std::span<const std::byte> src, const PackedMatrix& shape, int32_t panel_begin,
                int32_t panel_end, std::byte* dst);

// Dequantises row `row` of a packed matrix to out[cols]: the embedding lookup, and tests.
void UnpackRow(const PackedMatrix& matrix, int32_t row, float* out);

// Dequantises `count` elements (a multiple of the type's block) of file data: the definition of
// each type.
void DequantizeBlocks(DType type, const std::byte* src, int64_t count, float* out);

}  // namespace quire
