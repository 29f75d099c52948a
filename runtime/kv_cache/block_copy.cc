// Leading tokens are strided columns of a K tile and a row prefix of each V panel. Both are copied
// in whole groups of `pack` tokens' dims; a V row pair that is copied in half gets its other half
// zeroed element by element.
#include "runtime/kv_cache/block_copy.h"

#include <cstring>

#include "absl/log/check.h"

namespace quire {
namespace {

void CopyK(const KvLayout& layout, const std::byte* src, std::byte* dst, int32_t tokens) {
  const size_t row_bytes = kBlockTokens * layout.pack * layout.element_bytes();
  const size_t copied = static_cast<size_t>(tokens) * layout.pack * layout.element_bytes();
  for (int32_t row = 0; row < layout.head_dim / layout.pack; ++row) {
    std::memcpy(dst + row * row_bytes, src + row * row_bytes, copied);
  }
}

void CopyV(const KvLayout& layout, const std::byte* src, std::byte* dst, int32_t tokens) {
  const size_t element = layout.element_bytes();
  for (int32_t panel = 0; panel < layout.num_panels(); ++panel) {
    const size_t start = layout.VIndex(0, panel * KvLayout::kPanelDims) * element;
    const int32_t width = layout.PanelWidth(panel);
    const size_t panel_bytes = static_cast<size_t>(kBlockTokens) * width * element;
    // Of `pack` tokens.
    const size_t row_bytes = static_cast<size_t>(width) * layout.pack * element;
    const size_t copied = (tokens + layout.pack - 1) / layout.pack * row_bytes;
    std::memcpy(dst + start, src + start, copied);
    std::memset(dst + start + copied, 0, panel_bytes - copied);
  }
  const int32_t group_end = (tokens + layout.pack - 1) / layout.pack * layout.pack;
  for (int32_t token = tokens; token < group_end; ++token) {
    for (int32_t dim = 0; dim < layout.head_dim; ++dim) {
      std::memset(dst + layout.VIndex(token, dim) * element, 0, element);
    }
  }
}

void CopyScales(const KvLayerView& kv, const BlockCopy& copy, int32_t head) {
  const size_t copied = static_cast<size_t>(copy.token_count) * sizeof(uint16_t);
  std::memcpy(kv.KScales(copy.dst, head), kv.KScales(copy.src, head), copied);
  std::memcpy(kv.VScales(copy.dst, head), kv.VScales(copy.src, head), copied);
  std::memset(kv.VScales(copy.dst, head) + copy.token_count, 0, kv.layout.scale_bytes() - copied);
}

}  // namespace

void CopyBlocks(const KvLayerView& kv, std::span<const BlockCopy> copies) {
  for (const BlockCopy& copy : copies) {
    DCHECK(copy.src != copy.dst && copy.token_count > 0 && copy.token_count < kBlockTokens);
    for (int32_t head = 0; head < kv.layout.num_kv_heads; ++head) {
      CopyK(kv.layout, kv.KTile(copy.src, head), kv.KTile(copy.dst, head), copy.token_count);
      CopyV(kv.layout, kv.VTile(copy.src, head), kv.VTile(copy.dst, head), copy.token_count);
      if (kv.layout.scaled()) CopyScales(kv, copy, head);
    }
  }
}

}  // namespace quire
