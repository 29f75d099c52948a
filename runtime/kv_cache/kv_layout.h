// Where the K and V of a token lie inside a block of the KV pool: the addresses that append,
// attention and copies agree on. Plain values, usable from any thread; a KvLayerView points into a
// KvPool, which owns the memory.
//
// A block holds kBlockTokens tokens of all layers. Per layer and KV head it is one K tile and one V
// tile, both B operands of the attention products as they lie, v = pack elements of the reduced
// dimension side by side:
//   K tile  [head_dim / v][64 tokens][v]                         Q K^T reduces over dims
//   V tile  panels of up to 64 dims: [64 / v tokens][width][v]   P V reduces over tokens
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/base/ids.h"

namespace quire {

enum class KvDType : uint8_t { kF32, kBF16 };

constexpr const char* KvDTypeName(KvDType type) { return type == KvDType::kF32 ? "f32" : "bf16"; }

struct KvLayout {
  static constexpr int32_t kPanelDims = 64;  // widest V panel

  KvDType dtype = KvDType::kBF16;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;  // even
  int32_t pack = 2;      // v: 1 for f32, 2 for bf16

  static constexpr KvLayout Make(KvDType dtype, int32_t num_kv_heads, int32_t head_dim) {
    return {dtype, num_kv_heads, head_dim, dtype == KvDType::kF32 ? 1 : 2};
  }

  constexpr size_t element_bytes() const { return dtype == KvDType::kF32 ? 4 : 2; }
  constexpr size_t tile_elements() const { return static_cast<size_t>(head_dim) * kBlockTokens; }
  constexpr size_t tile_bytes() const {
    return tile_elements() * element_bytes();
  }  // multiple of 64
  constexpr size_t block_bytes() const {  // of one layer
    return static_cast<size_t>(num_kv_heads) * 2 * tile_bytes();
  }
  constexpr size_t bytes_per_token() const { return block_bytes() / kBlockTokens; }  // of one layer

  // Bytes from the start of a layer's pool to a head's K tile; the V tile follows it.
  constexpr size_t KTileOffset(BlockId block, int32_t kv_head) const {
    return static_cast<size_t>(block) * block_bytes() +
           static_cast<size_t>(kv_head) * 2 * tile_bytes();
  }
  constexpr size_t VTileOffset(BlockId block, int32_t kv_head) const {
    return KTileOffset(block, kv_head) + tile_bytes();
  }

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
};

constexpr BlockId BlockOf(KvSlot slot) {
  return BlockId{static_cast<int32_t>(slot) / kBlockTokens};
}
constexpr int32_t OffsetOf(KvSlot slot) { return static_cast<int32_t>(slot) % kBlockTokens; }

}  // namespace quire
