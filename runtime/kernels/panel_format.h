// Bytes of a weight panel, shared by the code that packs and the kernels that read. A panel is 16
// output rows; along k it is a sequence of records, each a header and one or eight blocks of 32 k.
// A block is scales, then the plane of the bits above the nibble, then the quants. Quants of a
// block are lines of 64 bytes [row 0..15][4 k]; line g holds k 4g..4g+3 of the block. Nibble lines
// hold group g low and group g + 4 high. Float panels are [k][16 rows]. The same bytes serve every
// instruction set. Pure data; any thread.
//
//   type       header              scales of a block     bit plane
//   Q4_0 Q5_0  -                   d f16[16]             Q5: byte i of the plane holds, in bit g,
//   the fifth bit Q4_1 Q5_1  -                   d f16[16], m f16[16]      of byte i of group g
//   Q8_0       -                   d f16[16]             -
//   Q4_K Q5_K  d, -dmin f16[16]    sc, mn u8[16]         Q5: as above
//   Q6_K       d f16[16]           sc s8[16] of k 0..15  line h: two bits of each of the groups
//   4h..4h+3,
//                                  and of k 16..31           group g at bit 2 (g mod 4)
#pragma once

#include <cstdint>

#include "runtime/tensor/dtype.h"

namespace quire {

struct PanelFormat {
  int32_t blocks_per_record = 1;
  int32_t header_bytes = 0;
  int32_t scale_bytes = 0;
  int32_t plane_bytes = 0;
  int32_t quant_bytes = 0;

  constexpr int32_t BlockBytes() const { return scale_bytes + plane_bytes + quant_bytes; }
  constexpr int32_t RecordBytes() const { return header_bytes + blocks_per_record * BlockBytes(); }
};

// Of a quantised type; all zero for float types.
constexpr PanelFormat PanelFormatOf(DType type) {
  switch (type) {
    case DType::kQ4_0:
      return {1, 0, 32, 0, 256};
    case DType::kQ4_1:
      return {1, 0, 64, 0, 256};
    case DType::kQ5_0:
      return {1, 0, 32, 64, 256};
    case DType::kQ5_1:
      return {1, 0, 64, 64, 256};
    case DType::kQ8_0:
      return {1, 0, 32, 0, 512};
    case DType::kQ4_K:
      return {8, 64, 32, 0, 256};
    case DType::kQ5_K:
      return {8, 64, 32, 64, 256};
    case DType::kQ6_K:
      return {8, 32, 32, 128, 256};
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      break;
  }
  return {0, 0, 0, 0, 0};
}

}  // namespace quire
