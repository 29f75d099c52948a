// Where the K and V of a token lie inside a block of the KV pool: the addresses that append,
// attention and copies agree on. Plain values, usable from any thread; a KvLayerView points into a
// KvPool, which owns the memory.
//
// A block holds kBlockTokens tokens of all layers. Per layer and KV head it is one K tile and one V
// tile, both B operands of the attention products as they lie, v = pack elements of the reduced
// dimension side by side:
//   K tile  [head_dim / v][64 tokens][v]                         Q K^T reduces over dims
//   V tile  panels of up to 64 dims: [64 / v tokens][width][v]   P V reduces over tokens
// Integer types have a scale per token and head, behind the V tile: 64 bf16 for K, 64 for V. An
// element is integer * scale; the rows of K are Hadamard transforms (kernels/hadamard.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/base/ids.h"

namespace quire {

enum class KvDType : uint8_t { kF32, kBF16, kInt8, kInt16 };

constexpr const char* KvDTypeName(KvDType type) {
  constexpr const char* kNames[] = {"f32", "bf16", "int8", "int16"};
  return kNames[static_cast<int32_t>(type)];
}

struct KvLayout {
  static constexpr int32_t kPanelDims = 64;  // widest V panel

  KvDType dtype = KvDType::kBF16;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;  // even
  int32_t pack = 2;      // v: 1 for f32, else 2

  static constexpr KvLayout Make(KvDType dtype, int32_t num_kv_heads, int32_t head_dim) {
    return {dtype, num_kv_heads, head_dim, dtype == KvDType::kF32 ? 1 : 2};
  }

  constexpr size_t element_bytes() const {
    return dtype == KvDType::kF32 ? 4 : dtype == KvDType::kInt8 ? 1 : 2;
  }
  constexpr int32_t word_bytes() const {  // of `pack` elements
    return pack * static_cast<int32_t>(element_bytes());
  }
  constexpr bool scaled() const { return dtype == KvDType::kInt8 || dtype == KvDType::kInt16; }
  // Of a scaled type. int16 stays at 12 bits, so that sums of 256 products with 12 bits more fit in
  // 32.
  constexpr int32_t max_integer() const { return dtype == KvDType::kInt8 ? 127 : 2047; }
  constexpr size_t tile_elements() const { return static_cast<size_t>(head_dim) * kBlockTokens; }
  constexpr size_t tile_bytes() const {
    return tile_elements() * element_bytes();
  }  // multiple of 64
  constexpr size_t block_bytes() const {  // of one layer
    return static_cast<size_t>(num_kv_heads) * head_bytes();
  }
  constexpr size_t scale_bytes() const { return scaled() ? kBlockTokens * sizeof(uint16_t) : 0; }
  constexpr size_t head_bytes() const { return 2 * (tile_bytes() + scale_bytes()); }
  constexpr size_t bytes_per_token() const { return block_bytes() / kBlockTokens; }  // of one layer

  // Bytes from the start of a layer's pool to a head's K tile; the V tile follows it, then the
  // scales of K and of V.
  constexpr size_t KTileOffset(BlockId block, int32_t kv_head) const {
    return static_cast<size_t>(block) * block_bytes() + static_cast<size_t>(kv_head) * head_bytes();
  }
  constexpr size_t VTileOffset(BlockId block, int32_t kv_head) const {
    return KTileOffset(block, kv_head) + tile_bytes();
  }
  // Scales from the start of their tile.
  constexpr size_t KScaleOffset() const { return 2 * tile_bytes(); }
  constexpr size_t VScaleOffset() const { return tile_bytes() + scale_bytes(); }

  // Width of the V panel that starts at dim `panel * kPanelDims`, and the number of panels.
  constexpr int32_t num_panels() const { return (head_dim + kPanelDims - 1) / kPanelDims; }
  constexpr int32_t PanelWidth(int32_t panel) const {
    return std::min(kPanelDims, head_dim - panel * kPanelDims);
  }

  // Element index inside a K or V tile.
  constexpr size_t KIndex(int32_t token, int32_t dim) const {
    return (static_cast<size_t>(dim / pack) * kBlockTokens + token) * pack + dim % pack;
  }
  constexpr size_t VIndex(int32_t token, int32_t dim) const {
    const int32_t panel = dim / kPanelDims;
    const size_t start = static_cast<size_t>(panel) * kPanelDims * kBlockTokens;
    const size_t row = static_cast<size_t>(token / pack) * PanelWidth(panel);
    return start + (row + dim % kPanelDims) * pack + token % pack;
  }
};

// The blocks of one layer.
struct KvLayerView {
  std::byte* data = nullptr;  // [num_blocks] blocks of layout.block_bytes(), 64-byte aligned
  KvLayout layout;

  std::byte* KTile(BlockId block, int32_t kv_head) const {
    return data + layout.KTileOffset(block, kv_head);
  }
  std::byte* VTile(BlockId block, int32_t kv_head) const {
    return data + layout.VTileOffset(block, kv_head);
  }
  // [64] bf16; only where layout.scaled().
  uint16_t* KScales(BlockId block, int32_t kv_head) const {
    return reinterpret_cast<uint16_t*>(KTile(block, kv_head) + layout.KScaleOffset());
  }
  uint16_t* VScales(BlockId block, int32_t kv_head) const {
    return reinterpret_cast<uint16_t*>(VTile(block, kv_head) + layout.VScaleOffset());
  }
};

constexpr BlockId BlockOf(KvSlot slot) {
  return BlockId{static_cast<int32_t>(slot) / kBlockTokens};
}
constexpr int32_t OffsetOf(KvSlot slot) { return static_cast<int32_t>(slot) % kBlockTokens; }

}  // namespace quire
